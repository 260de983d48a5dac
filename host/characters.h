#pragma once

// Where characters of UTF-8 end, for programs that cut text.

#include <cstddef>
#include <string_view>

#include "runtime/text/utf8.h"

namespace oxbow {

/// Bytes of the character that `text` begins with; 0 when it is malformed or cut off.
inline size_t character_bytes(std::string_view text) {
  const Utf8Character next = read_utf8(text);
  return next.kind == Utf8Character::Kind::kCharacter ? next.bytes : 0;
}

inline bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace oxbow
