#pragma once

// What a verification says, for people and for programs.

#include <string>
#include <vector>

#include "tools/verify/outcome.h"

namespace oxbow::tools {

struct Verification {
  std::string model;
  std::string io;
  Tolerance tolerance;
  std::vector<Outcome> outcomes;
  std::vector<std::string> not_produced;

  // Filled by summarize().
  size_t failed = 0;
  double max_error = 0.0;
  double least_cosine = 1.0;
  bool ok = false;
};

/// Sorts by name and sums up.
void summarize(Verification& verification);
void print_json(const Verification& verification);
void print_text(const Verification& verification);

}  // namespace oxbow::tools
