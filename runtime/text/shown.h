#pragma once

// What of a text from outside may be shown as it is.

#include <cstdint>

namespace oxbow {

/// Terminals obey controls, also those from U+0080 to U+009F, and the marks of direction make a line look like another.
constexpr bool is_obeyed(uint32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0) || code_point == 0x61c ||
         code_point == 0x200e || code_point == 0x200f ||
         (code_point >= 0x2028 && code_point <= 0x202e) ||
         (code_point >= 0x2066 && code_point <= 0x2069);
}

}  // namespace oxbow
