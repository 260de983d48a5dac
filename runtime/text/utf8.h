#pragma once

// UTF-8, one character at a time and strictly. Text comes from outside: what is malformed is told
// apart from what only ends too early.

#include <cstddef>
#include <cstdint>
#include <span>

namespace oxbow {

/// The first character of `text`, strictly: no overlong forms, no surrogates, nothing above
/// U+10FFFF.
struct Utf8Character {
  enum class Kind { kCharacter, kIncomplete, kMalformed };
  Kind kind = Kind::kMalformed;
  uint32_t code_point = 0;
  size_t bytes = 0;
};
Utf8Character read_utf8(std::span<const char> text);

/// How many bytes at the beginning of malformed text are replaced by one U+FFFD: as many as begin a
/// character, at least one. What the Unicode standard calls substitution of maximal subparts.
size_t malformed_bytes(std::span<const char> text);

inline constexpr uint32_t kReplacementCharacter = 0xfffd;
inline constexpr size_t kMaxCharacterBytes = 4;

/// Writes 1 to 4 bytes and returns how many. `code_point` must be one: see is_code_point().
size_t write_utf8(uint32_t code_point, char bytes[4]);

/// True for what Unicode calls a scalar value: up to U+10FFFF without the surrogates.
constexpr bool is_code_point(uint32_t value) {
  return value < 0xd800 || (value > 0xdfff && value <= 0x10ffff);
}

}  // namespace oxbow
