#pragma once

// The programs of the build, run as a user would.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/files.h"

namespace oxbow::testing {

struct CommandResult {
  int exit_code = 0;
  std::string out;
  std::string err;
  /// The most memory it had at a time; never less than own_peak_bytes() when it was started, for the system
  /// counts the process that starts a program as part of it.
  uint64_t peak_bytes = 0;
};

/// The most memory this process had so far.
uint64_t own_peak_bytes();

/// Runs a program of the build with arguments (no shell) and waits. OXB_TEST_CONVERTER names another oxbow-convert, of
/// this machine, for builds that are about what happens to converted files.
CommandResult run_program(const std::string& program, const std::vector<std::string>& arguments);

/// OXB_TEST_CONVERTER; empty: the build's own.
std::string other_converter();

/// The same with a standard input that the test writes as it goes.
class PipedProgram {
 public:
  /// `keep_output` false: what it prints is thrown away, however much it is.
  PipedProgram(const std::string& program, const std::vector<std::string>& arguments,
               bool keep_output = true);
  ~PipedProgram();
  PipedProgram(const PipedProgram&) = delete;
  PipedProgram& operator=(const PipedProgram&) = delete;

  /// False when the program does not read any more.
  bool write(std::string_view text);
  /// The most memory it had at a time until now; 0 when the system does not tell.
  uint64_t peak_bytes() const;
  /// As Ctrl-C does.
  void interrupt() const;
  /// What it has printed until now.
  std::string output() const;
  /// Ends its input and waits.
  CommandResult finish();

 private:
  TemporaryDirectory directory_;
  bool keep_output_;
  int input_ = -1;
  pid_t pid_ = 0;
};

}  // namespace oxbow::testing
