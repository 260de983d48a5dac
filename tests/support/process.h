#pragma once

// The programs of the build, run as a user would.

#include <string>
#include <vector>

namespace oxbow::testing {

struct CommandResult {
  int exit_code;
  std::string out;
  std::string err;
};

/// Runs a program of the build with arguments (no shell) and waits.
CommandResult run_program(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace oxbow::testing
