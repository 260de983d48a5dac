#pragma once

// Text that arrives in pieces which may cut a character in two, as the tokens of a byte vocabulary
// do.

#include <string>
#include <string_view>

namespace oxbow::tools {

/// Collects bytes and gives back whole characters. A byte that belongs to no character becomes
/// U+FFFD.
class Utf8Stream {
 public:
  /// The characters that are complete now.
  std::string add(std::string_view bytes) {
    pending_ += bytes;
    std::string whole;
    size_t at = 0;
    while (at < pending_.size()) {
      const size_t length = character_bytes(std::string_view(pending_).substr(at));
      if (length == kIncomplete) break;
      if (length == kMalformed) {
        whole += "\xef\xbf\xbd";
        at += 1;
      } else {
        whole.append(pending_, at, length);
        at += length;
      }
    }
    pending_.erase(0, at);
    return whole;
  }

  /// Bytes of a character that is not complete, 3 at most.
  const std::string& pending() const { return pending_; }

 private:
  static constexpr size_t kIncomplete = 0;
  static constexpr size_t kMalformed = 5;

  /// Unicode's table 3-7: well-formed byte sequences.
  static size_t character_bytes(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4) return kMalformed;
    const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < length; ++i) {
      if (i == text.size()) return kIncomplete;
      unsigned low = 0x80, high = 0xbf;
      if (i == 1 && lead == 0xe0) low = 0xa0;
      if (i == 1 && lead == 0xed) high = 0x9f;
      if (i == 1 && lead == 0xf0) low = 0x90;
      if (i == 1 && lead == 0xf4) high = 0x8f;
      if (byte(i) < low || byte(i) > high) return kMalformed;
    }
    return length;
  }

  std::string pending_;
};

}  // namespace oxbow::tools
