#pragma once

// What rendering may cost, and how it says no. A template is somebody else's program: all of its
// work is counted here, so that none can take long or much memory.

#include <cstddef>
#include <string>

namespace oxbow::convert::jinja {

inline constexpr size_t kMaxTemplateBytes = size_t{1} << 20;
inline constexpr size_t kMaxTextBytes = size_t{1} << 20;  // of any one string, the output included
inline constexpr size_t kMaxSteps = 1'000'000;
inline constexpr size_t kMaxRange = 100'000;  // of range(); the original's sandbox has the same
inline constexpr int kMaxParseDepth = 64;     // tags in tags, brackets in brackets
inline constexpr int kMaxValueDepth = 64;     // lists in lists
inline constexpr int kMaxRunDepth = 256;  // all of a template's depth, and macros calling macros
inline constexpr size_t kMaxNameBytes = 200;

/// Throws InputError: "chat template, line N: " and what is wrong there.
[[noreturn]] void refuse(int line, const std::string& what);

/// A name or text of the template, in quotes, fit for a message.
std::string quoted(const std::string& text);

class Meter {
 public:
  /// The line at work, for messages.
  int line = 1;

  void step(size_t count = 1) {
    if (count > left_) refuse("rendering takes more than a million steps");
    left_ -= count;
  }
  /// For work on text. The divisor lets strings made over a whole run have 64 MB together.
  void bytes(size_t count) { step(1 + count / 64); }
  /// For searching, whose worst case is the product.
  void search(size_t text, size_t pattern) { step(1 + text / 64 * (1 + pattern / 64)); }
  /// For a string about to be made.
  void text(size_t count) {
    if (count > kMaxTextBytes) refuse("a text would become longer than 1 MiB");
    bytes(count);
  }

  [[noreturn]] void refuse(const std::string& what) const { jinja::refuse(line, what); }

 private:
  size_t left_ = kMaxSteps;
};

}  // namespace oxbow::convert::jinja
