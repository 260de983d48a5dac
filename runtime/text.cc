#include "runtime/text.h"

#include <algorithm>

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

Status build_char_index(std::span<const uint32_t> code_points, std::span<uint32_t> order,
                        CharIndex* index, Error* error) {
  if (order.size() != code_points.size()) {
    return fail(error, Status::kInternal, "character index: room for %zu ids, expected %zu",
                order.size(), code_points.size());
  }
  for (size_t id = 0; id < code_points.size(); ++id) {
    if (!is_code_point(code_points[id])) {
      return fail(error, Status::kFileCorrupt,
                  "tokenizer: token %zu stands for 0x%x, no Unicode character", id,
                  static_cast<unsigned>(code_points[id]));
    }
    order[id] = static_cast<uint32_t>(id);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return code_points[a] != code_points[b] ? code_points[a] < code_points[b] : a < b;
  });
  *index = {code_points, order};
  return Status::kOk;
}

Status encode_bytes(uint32_t vocabulary, std::span<const char> text, std::span<int32_t> ids,
                    Encoded* encoded, Error* error) {
  const size_t count = std::min(text.size(), ids.size());
  for (size_t i = 0; i < count; ++i) {
    *encoded = {i, i};
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte >= vocabulary) {
      return fail(error, Status::kInvalidArgument,
                  "text, byte %zu: the value %u is not in the vocabulary of %u bytes", i,
                  static_cast<unsigned>(byte), static_cast<unsigned>(vocabulary));
    }
    ids[i] = byte;
  }
  *encoded = {count, count};
  return Status::kOk;
}

Status encode_chars(const CharIndex& index, std::span<const char> text, std::span<int32_t> ids,
                    Encoded* encoded, Error* error) {
  using Kind = Utf8Character::Kind;
  *encoded = {};
  while (encoded->count < ids.size() && encoded->consumed < text.size()) {
    const Utf8Character next = read_utf8(text.subspan(encoded->consumed));
    if (next.kind == Kind::kIncomplete) return Status::kOk;
    if (next.kind == Kind::kMalformed) {
      return fail(error, Status::kInvalidArgument,
                  "text, byte %zu: 0x%02x does not begin a character in UTF-8", encoded->consumed,
                  static_cast<unsigned>(static_cast<uint8_t>(text[encoded->consumed])));
    }
    const auto found = std::lower_bound(
        index.order.begin(), index.order.end(), next.code_point,
        [&](uint32_t id, uint32_t code_point) { return index.code_points[id] < code_point; });
    if (found == index.order.end() || index.code_points[*found] != next.code_point) {
      return fail(error, Status::kInvalidArgument,
                  "text, byte %zu: U+%04X '%.*s' is not in the vocabulary of %zu characters",
                  encoded->consumed, static_cast<unsigned>(next.code_point),
                  // A control character in a message helps nobody.
                  next.code_point < 0x20 ? 0 : static_cast<int>(next.bytes),
                  text.data() + encoded->consumed, index.code_points.size());
    }
    ids[encoded->count] = static_cast<int32_t>(*found);
    encoded->count += 1;
    encoded->consumed += next.bytes;
  }
  return Status::kOk;
}

Status decode_byte(uint32_t vocabulary, int32_t id, char bytes[8], size_t* count, Error* error) {
  if (id < 0 || id > 255 || static_cast<uint32_t>(id) >= vocabulary) {
    return fail(error, Status::kInvalidArgument, "token %d is no byte: expected 0 to %u", id,
                static_cast<unsigned>(std::min<uint32_t>(vocabulary, 256) - 1));
  }
  bytes[0] = static_cast<char>(static_cast<uint8_t>(id));
  *count = 1;
  return Status::kOk;
}

Status decode_char(std::span<const uint32_t> code_points, int32_t id, char bytes[8], size_t* count,
                   Error* error) {
  if (id < 0 || static_cast<size_t>(id) >= code_points.size()) {
    return fail(error, Status::kInvalidArgument,
                "token %d is not in the vocabulary of %zu characters", id, code_points.size());
  }
  *count = write_utf8(code_points[static_cast<size_t>(id)], bytes);
  return Status::kOk;
}

}  // namespace oxbow
