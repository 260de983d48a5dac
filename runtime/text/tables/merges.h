#pragma once

// The table of a byte-pair encoding: which two pieces join to which third, and which go first. A hash
// table with linear probing, made by the converter and used in place. The table comes from outside: what
// has longer runs of full places than a table of pairs can have is refused when a model is opened, so that
// every search is short.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "schema/model_generated.h"

namespace oxbow {

inline constexpr uint32_t kNoPiece = 0xffffffff;

/// Where the search for a pair begins in a table of `places`.
inline size_t merge_place(uint32_t left, uint32_t right, size_t places) {
  uint64_t mixed = (uint64_t{left} << 32 | right) * 0x9e3779b97f4a7c15ull;
  mixed ^= mixed >> 32;
  mixed *= 0xd6e8feb86659fd93ull;
  return static_cast<size_t>((mixed >> 32) * places >> 32);
}

/// The converter fills half of the places; in a table of a million the longest run has some 60.
inline constexpr size_t kMaxMergeProbes = 1024;

class MergeTable {
 public:
  MergeTable() = default;
  explicit MergeTable(std::span<const schema::Merge> places) : places_(places) {}

  /// Null when the two do not join.
  const schema::Merge* find(uint32_t left, uint32_t right) const {
    size_t at = places_.empty() ? 0 : merge_place(left, right, places_.size());
    for (size_t probes = 0; probes < std::min(places_.size(), kMaxMergeProbes); ++probes) {
      const schema::Merge& merge = places_[at];
      if (merge.left() == left && merge.right() == right) return &merge;
      if (merge.left() == kNoPiece) return nullptr;
      if (++at == places_.size()) at = 0;
    }
    return nullptr;
  }

 private:
  std::span<const schema::Merge> places_;
};

}  // namespace oxbow
