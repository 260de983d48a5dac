#pragma once

// How failure travels on the host side: exceptions that know the exit code they lead to. The text
// is one line that says what is wrong and what was expected.

#include <stdexcept>
#include <string>

namespace oxbow {

/// The command line makes no sense. Exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file that is given, or one that is to be written, is not what it must be. Exit code 3.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A check that the program was asked for did not hold. Exit code 1.
class CheckFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr int kExitGood = 0;
inline constexpr int kExitCheckFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInput = 3;

/// A text from outside, fit for a one-line message: control characters, marks of direction and what is no UTF-8 become
/// `?`, and what is longer than `limit` bytes is cut.
std::string printable(const std::string& text, size_t limit = 200);

/// Runs `body` and turns what it throws into one line on stderr, "program: text", and an exit code.
int run_program(const std::string& program, int (*body)(int, char**), int argc, char** argv);

}  // namespace oxbow
