#pragma once

// The end of a fuzz target that has seen a promise broken.

#include <cstdio>
#include <cstdlib>
#include <string>

namespace oxbow::testing {

/// What is being looked at, for the message.
inline std::string broken_subject;

[[noreturn]] inline void broken(const char* promise, const std::string& text = "") {
  std::fprintf(stderr, "broken: %s %s\n", promise, text.c_str());
  if (!broken_subject.empty()) std::fprintf(stderr, "of %s\n", broken_subject.c_str());
  std::abort();
}

}  // namespace oxbow::testing
