#pragma once

// Where the keys of a sequence of positions lie in memory.
//
//   positions   0 1 2 3 4 5 6 7 8 9 ...            of positions   {2, 4, 2}: 2, 4, 6, 8
//   ranges      [pinned][ring   ][ring][own ...    of keys        {4, 6} of one range, {2}, {8} of others
//               rows     from    up to this
//                        head    head  run

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/attention/attention.h"
#include "ops/attention/patterns/span.h"

namespace oxbow {

/// Pinned rows, and the two parts of a ring that goes round.
inline constexpr size_t kMaxKeyRanges = 3 * kMaxAttentionSources;

/// Positions [first, end), one row after the other in memory; of one key/value head.
template <typename Element>
struct KeyRange {
  uint64_t first;
  uint64_t end;
  const Element* k;
  const Element* v;
  const float* k_scales;
  const float* v_scales;
  /// Row of the first in the last source, or kNoRow.
  uint64_t row;
  bool pinned;
  /// Distances to these keys count a query beyond this position as if it were there.
  uint64_t reach;
  /// Unless 0: rows are of four bits (I4RowBlock), and this is from one to the next, in bytes, of keys and of values.
  size_t packed_k_stride = 0;
  size_t packed_v_stride = 0;
};

/// All keys there are, for one key/value head.
template <typename Element>
struct KeyRanges {
  KeyRange<Element> ranges[kMaxKeyRanges];
  size_t count;
  /// Where keys of a tile are unpacked, if some ranges are packed: unpacked_bytes(). Otherwise null.
  std::byte* unpacked = nullptr;
};

/// Keys, values and scales of both for one head of a tile.
constexpr size_t unpacked_bytes(const AttentionShape& shape) {
  return round_up(kAttentionTile * (shape.head_width + shape.value_width + 2 * sizeof(float)),
                  kTensorAlignment);
}

/// Gives the keys at these positions, in ascending order, to the kernel, tile by tile, and ends every task; all of these
/// live longer. `ranges` are of the first task's head of keys. The tasks are heads of one query, or, as a block, queries
/// with one head of keys, of which each sees the first of these keys, as many as it says are to come.
template <typename Element>
void attend_spans(const AttentionKernel<Element>& kernel, const AttentionShape& shape,
                  const AttentionTerms& terms, const KeyRanges<Element>& ranges,
                  std::span<HeadTask> tasks, std::span<const PositionSpan> spans,
                  bool block = false);

}  // namespace oxbow
