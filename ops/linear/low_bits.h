#pragma once

// What the kernels for int4 and ternary weights share. Codes are stored without a sign, as code + offset, so that
//
//   dot(x, code) = dot(x, stored) - offset * sum(x)
//
// and the sums of x are made once for all channels; those of I4MinBlock are multiplied by mins. Everything is in an unnamed namespace: no copy compiled with an ISA's
// flags gets outside its file.

#include <type_traits>

#include "ops/linear/linear.h"

namespace oxbow {
namespace {

/// Rows of a tile at most.
constexpr size_t kLowBitRows = 4;
constexpr size_t kMostI4Blocks = kMaxI8Depth / kI4BlockColumns + 1;

template <typename Block>
constexpr bool kHasMin = std::is_same_v<Block, I4MinBlock>;

/// What each part of a sum is multiplied by: the scale of its block of columns, or 1, which changes no bit.
struct BlockScales {
  const float* first;
  size_t row_step, block_step;

  [[gnu::always_inline]] float of(size_t row, size_t block) const {
    return first[row * row_step + block * block_step];
  }
};

template <typename W>
inline BlockScales block_scales(const LinearSlice<int8_t, W>& s, size_t row) {
  static constexpr float kOne = 1.0f;
  if (s.x_groups == 1) return {&kOne, 0, 0};
  return {s.x_scales + row * s.x_groups, s.x_groups, 1};
}

/// And what the whole sum is multiplied by.
template <typename W>
inline float row_scale(const LinearSlice<int8_t, W>& s, size_t row) {
  return s.x_groups == 1 ? s.x_scales[row] : 1.0f;
}

/// Up to kLowBitRows rows of x as int4 kernels read them: in whole blocks of columns, with the sum of each.
struct I4Rows {
  const int8_t* x = nullptr;
  size_t x_stride = 0;
  /// Of these blocks x has all columns; behind them may be one that `last` has.
  size_t whole = 0;
  size_t blocks = 0;
  int8_t last[kLowBitRows][kI4BlockColumns];
  int32_t sums[kLowBitRows][kMostI4Blocks];
  BlockScales scales;

  const int8_t* columns(size_t row, size_t block) const {
    return block < whole ? x + row * x_stride + block * kI4BlockColumns : last[row];
  }
};

inline int32_t sum_of(const int8_t* x, size_t count) {
  int32_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += x[i];
  return sum;
}

template <typename W>
inline void take_rows(const LinearSlice<int8_t, W>& s, size_t row, size_t rows, I4Rows* taken) {
  taken->x = s.x + row * s.x_stride;
  taken->x_stride = s.x_stride;
  taken->scales = block_scales(s, row);
  taken->whole = s.depth / kI4BlockColumns;
  taken->blocks = (s.depth + kI4BlockColumns - 1) / kI4BlockColumns;
  for (size_t r = 0; r < rows; ++r) {
    const int8_t* x = taken->x + r * s.x_stride;
    if (taken->whole < taken->blocks) {
      const size_t first = taken->whole * kI4BlockColumns;
      __builtin_memset(taken->last[r], 0, kI4BlockColumns);
      __builtin_memcpy(taken->last[r], x + first, s.depth - first);
    }
    for (size_t b = 0; b < taken->blocks; ++b) {
      taken->sums[r][b] = sum_of(taken->columns(r, b), kI4BlockColumns);
    }
  }
}

/// All blocks of channels: as far as they go kStreams at once, which lie apart as memory serves best, then one by one.
/// tile.operator()<count>(first, distance) takes the blocks first, first + distance, ...
template <size_t kStreams, typename Tile>
[[gnu::always_inline]] inline void for_distant_blocks(size_t channels, const Tile& tile) {
  const size_t blocks = (channels + kBlockRows - 1) / kBlockRows, length = blocks / kStreams;
  for (size_t i = 0; i < length; ++i) tile.template operator()<kStreams>(i, length);
  for (size_t i = kStreams * length; i < blocks; ++i) tile.template operator()<1>(i, 0);
}

}  // namespace
}  // namespace oxbow
