#pragma once

// Replacements for sequences of bytes, as SentencePiece has them: the longest sequence that the text
// begins with is replaced. A sequence replaced by itself is kept as it is, whatever is inside it.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "runtime/text/tables/trie.h"

namespace oxbow {

class CharMap {
 public:
  CharMap() = default;
  /// The strings end with zero bytes, and so does the last.
  CharMap(std::span<const uint32_t> trie, std::span<const char> strings)
      : trie_(trie), strings_(strings), plain_{0, 0} {
    for (uint32_t c = 0; c < 128; ++c) {
      if (stands_alone(static_cast<char>(c))) plain_[c / 64] |= uint64_t{1} << c % 64;
    }
  }

  /// Whether this character, when another ASCII character follows it, is never replaced.
  bool plain_ascii(char c) const {
    const auto byte = static_cast<uint8_t>(c);
    return byte < 128 && (plain_[byte / 64] >> byte % 64 & 1) != 0;
  }

  struct Replacement {
    /// Bytes of the text it replaces; 0: the text begins with no sequence that is replaced.
    size_t bytes = 0;
    std::span<const char> text;
    /// The text ended where a longer sequence might have gone on.
    bool open = false;
  };
  Replacement find(std::span<const char> text) const {
    Trie::Match match;
    const bool found = trie_.longest(text, &match);
    if (!found || match.value >= strings_.size()) return {0, {}, match.open};
    const char* string = strings_.data() + match.value;
    return {match.bytes, {string, std::strlen(string)}, match.open};
  }
  /// The same for the shortest sequence.
  Replacement shortest(std::span<const char> text) const {
    Trie::Walk walk = trie_.walk();
    for (size_t used = 0; used < text.size() && walk.step(text[used]);) {
      ++used;
      if (!walk.ends()) continue;
      if (walk.value() >= strings_.size()) break;
      const char* string = strings_.data() + walk.value();
      return {used, {string, std::strlen(string)}, false};
    }
    return {};
  }

 private:
  bool stands_alone(char c) const {
    Trie::Walk walk = trie_.walk();
    if (!walk.step(c)) return true;
    if (walk.ends()) return false;
    for (uint32_t next = 0; next < 128; ++next) {
      Trie::Walk on = walk;
      if (on.step(static_cast<char>(next))) return false;
    }
    return true;
  }

  Trie trie_;
  std::span<const char> strings_;
  /// A bit for each ASCII character.
  uint64_t plain_[2] = {~uint64_t{0}, ~uint64_t{0}};
};

}  // namespace oxbow
