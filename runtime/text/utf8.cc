#include "runtime/text/utf8.h"

namespace oxbow {

Utf8Character read_utf8(std::span<const char> text) {
  using Kind = Utf8Character::Kind;
  if (text.empty()) return {Kind::kIncomplete, 0, 0};
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {Kind::kCharacter, lead, 1};

  // The Unicode standard's table 3-7: the first continuation byte has a narrower range after some
  // leads, which excludes overlong forms, surrogates and values above U+10FFFF.
  size_t length = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  } else {
    return {Kind::kMalformed, 0, 0};
  }
  uint32_t code_point = lead & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Kind::kIncomplete, 0, 0};
    if (byte(i) < low || byte(i) > high) return {Kind::kMalformed, 0, 0};
    low = 0x80;
    high = 0xbf;
    code_point = code_point << 6 | (byte(i) & 0x3fu);
  }
  return {Kind::kCharacter, code_point, length};
}

size_t write_utf8(uint32_t code_point, char bytes[4]) {
  const auto tail = [&](int shift) {
    return static_cast<char>(0x80 | (code_point >> shift & 0x3f));
  };
  if (code_point < 0x80) {
    bytes[0] = static_cast<char>(code_point);
    return 1;
  }
  if (code_point < 0x800) {
    bytes[0] = static_cast<char>(0xc0 | code_point >> 6);
    bytes[1] = tail(0);
    return 2;
  }
  if (code_point < 0x10000) {
    bytes[0] = static_cast<char>(0xe0 | code_point >> 12);
    bytes[1] = tail(6);
    bytes[2] = tail(0);
    return 3;
  }
  bytes[0] = static_cast<char>(0xf0 | code_point >> 18);
  bytes[1] = tail(12);
  bytes[2] = tail(6);
  bytes[3] = tail(0);
  return 4;
}

size_t malformed_bytes(std::span<const char> text) {
  size_t bytes = 1;
  // A beginning that something could follow is incomplete, not malformed.
  while (bytes < text.size() &&
         read_utf8(text.first(bytes)).kind == Utf8Character::Kind::kIncomplete &&
         read_utf8(text.first(bytes + 1)).kind != Utf8Character::Kind::kMalformed) {
    ++bytes;
  }
  return bytes;
}

}  // namespace oxbow
