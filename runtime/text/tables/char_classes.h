#pragma once

// What a tokenizer must know about characters, as bits for each code point. The file brings the
// table, so that text is cut on every device as it was in training, whatever Unicode has added since,
// and the library carries no Unicode data of its own.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace oxbow {

enum CharClass : uint8_t {
  kLetter = 1,
  kNumber = 2,
  kSpace = 4,
  kPunctuation = 8,
  /// A word of its own, as Chinese characters are for BERT.
  kIsolated = 16,
  /// Left out.
  kRemoved = 32,
  /// Counts as part of a word beside an added token that must stand alone.
  kWordCharacter = 64,
  /// WordPiece: replaced by what the table of replacements says, or one of `ordered_marks`. Else: not the same whatever
  /// stands before it, by the table of normalization.
  kChanged = 128,
};

class CharClasses {
 public:
  static constexpr uint32_t kBlock = 128;
  static constexpr uint32_t kBlockCount = 0x110000 / kBlock;

  CharClasses() = default;
  /// `block_of` has kBlockCount elements, each below blocks.size() / kBlock.
  CharClasses(std::span<const uint16_t> block_of, std::span<const uint8_t> blocks)
      : block_of_(block_of), blocks_(blocks) {}

  bool empty() const { return block_of_.empty(); }
  /// The largest number of any code point.
  uint8_t largest() const {
    return blocks_.empty() ? 0 : *std::max_element(blocks_.begin(), blocks_.end());
  }
  /// The bits of a code point; none without a table.
  uint8_t of(uint32_t code_point) const {
    if (block_of_.empty()) return 0;
    return blocks_[size_t{block_of_[code_point / kBlock]} * kBlock + code_point % kBlock];
  }

 private:
  std::span<const uint16_t> block_of_;
  std::span<const uint8_t> blocks_;
};

}  // namespace oxbow
