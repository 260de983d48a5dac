#pragma once

// Text to token ids and back, for the two vocabularies a model file can carry: bytes, and
// characters (Unicode code points). Works on the memory it is given and allocates nothing.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"

namespace oxbow {

/// From code point to token id: the ids of a character vocabulary in the order of their code
/// points.
struct CharIndex {
  /// By id. Belongs to the model file.
  std::span<const uint32_t> code_points;
  /// The ids, sorted by code point, then id.
  std::span<const uint32_t> order;
};

/// Sorts the ids of `code_points` into `order`, which has as many elements and, like `code_points`,
/// outlives the index. A value that is no Unicode code point makes the file corrupt. When two ids
/// have the same code point, text becomes the lower one.
Status build_char_index(std::span<const uint32_t> code_points, std::span<uint32_t> order,
                        CharIndex* index, Error* error);

/// How far an encoder came.
struct Encoded {
  /// Ids written.
  size_t count = 0;
  /// Bytes of the text they stand for.
  size_t consumed = 0;
};

/// One id per byte. Fails at a byte that is not below `vocabulary`; `encoded` tells what came
/// before.
Status encode_bytes(uint32_t vocabulary, std::span<const char> text, std::span<int32_t> ids,
                    Encoded* encoded, Error* error);

/// One id per character. Stops without failure when `ids` is full or the text ends inside a
/// character. Fails at malformed UTF-8 and at a character the vocabulary lacks; `encoded` tells
/// what came before.
Status encode_chars(const CharIndex& index, std::span<const char> text, std::span<int32_t> ids,
                    Encoded* encoded, Error* error);

/// The bytes of one token, without terminator.
Status decode_byte(uint32_t vocabulary, int32_t id, char bytes[8], size_t* count, Error* error);
Status decode_char(std::span<const uint32_t> code_points, int32_t id, char bytes[8], size_t* count,
                   Error* error);

/// The first character of `text`, strictly: no overlong forms, no surrogates, nothing above
/// U+10FFFF.
struct Utf8Character {
  enum class Kind { kCharacter, kIncomplete, kMalformed };
  Kind kind = Kind::kMalformed;
  uint32_t code_point = 0;
  size_t bytes = 0;
};
Utf8Character read_utf8(std::span<const char> text);

/// Writes 1 to 4 bytes and returns how many. `code_point` must be one: see is_code_point().
size_t write_utf8(uint32_t code_point, char bytes[4]);

/// True for what Unicode calls a scalar value: up to U+10FFFF without the surrogates.
constexpr bool is_code_point(uint32_t value) {
  return value < 0xd800 || (value > 0xdfff && value <= 0x10ffff);
}

}  // namespace oxbow
