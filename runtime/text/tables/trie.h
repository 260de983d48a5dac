#pragma once

// A set of byte strings, each with a number, as a double array: the layout of the Darts-clone
// library, which the normalisation tables in SentencePiece's files have too. The array comes from
// outside, so a step never leaves it, and a walk takes no more steps than it is given bytes.
//
//   unit, 32 bits:  offset 31..10 | offset is times 256: 9 | a string ends here: 8 | label 7..0
//   or the number of a string in bits 30..0, with bit 31 set

#include <cstddef>
#include <cstdint>
#include <span>

namespace oxbow {

class Trie {
 public:
  Trie() = default;
  explicit Trie(std::span<const uint32_t> units) : units_(units) {}

  bool empty() const { return units_.empty(); }

  /// A place in the array: behind some bytes that begin a string of the set.
  class Walk {
   public:
    /// Goes on by one byte. False when no string goes on like that; the walk is then over. No string
    /// has a zero byte: its place in the array is that of the number, or of nothing.
    bool step(char byte) {
      const uint32_t label = static_cast<uint8_t>(byte);
      if (label == 0) return false;
      const size_t at = node_ ^ label;
      if (at >= units_.size()) return false;
      const uint32_t unit = units_[at];
      if ((unit & kLabelMask) != label) return false;
      node_ = at ^ offset(unit);
      ends_ = (unit >> 8 & 1) != 0 && node_ < units_.size();
      return true;
    }
    /// Where in the array the walk is: what can follow is the same for all walks that are there.
    size_t place() const { return node_; }
    /// Whether the bytes so far are a string of the set.
    bool ends() const { return ends_; }
    /// Its number, when ends().
    uint32_t value() const { return units_[node_] & 0x7fffffff; }

   private:
    friend class Trie;
    static constexpr uint32_t kLabelMask = 0x800000ff;

    static size_t offset(uint32_t unit) { return size_t{unit >> 10} << (unit >> 6 & 8); }
    explicit Walk(std::span<const uint32_t> units)
        : units_(units), node_(units.empty() ? 0 : offset(units[0])) {}

    std::span<const uint32_t> units_;
    size_t node_;
    bool ends_ = false;
  };

  Walk walk() const { return Walk(units_); }

  /// The longest string of the set that `text` begins with; false when there is none.
  struct Match {
    size_t bytes = 0;
    uint32_t value = 0;
    /// The text ended where a longer string might have gone on.
    bool open = false;
  };
  bool longest(std::span<const char> text, Match* match) const {
    *match = {};
    Walk walk = this->walk();
    size_t used = 0;
    while (used < text.size() && walk.step(text[used])) {
      ++used;
      if (walk.ends()) *match = {used, walk.value(), false};
    }
    match->open = used == text.size() && !empty();
    return match->bytes > 0;
  }

 private:
  std::span<const uint32_t> units_;
};

}  // namespace oxbow
