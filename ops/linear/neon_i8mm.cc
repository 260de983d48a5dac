// NEON with int8 matrix products: smmla takes two rows by eight columns of both sides. Rows of x are
// brought into that shape once for many channels. Weights have it after two halves of neighbouring
// groups are zipped, which is done where they are used: a packed copy would have to be written first.
// A single row is left to dot products, which read as much.

#include "ops/linear/linear.h"
#include "ops/linear/neon.h"
#include "ops/linear/tasks.h"

namespace oxbow {
namespace {

// What is on the stack at a time: 24 KiB of x, as many rows as the op gives, and sums for 64 channels.
constexpr size_t kPackedPairs = kTaskRows / 2;
constexpr size_t kPackedEights = 64;
constexpr size_t kPackedGroups = 2 * kPackedEights;
constexpr size_t kSumBlocks = 8;

size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/// Two rows by eight columns each.
struct PackedRows {
  int8x16_t pairs[kPackedPairs][kPackedEights];
};

/// Two rows by two channels each.
struct PairSums {
  int32x4_t pairs[kPackedPairs][kSumBlocks * 4];
};

/// `rows` rows of `groups` groups. The second row of the last pair may be missing and is zero then.
/// Reads whole sixteens, which the padding of rows allows.
void pack(const int8_t* x, size_t x_stride, size_t rows, size_t groups, PackedRows* packed) {
  for (size_t r = 0; r < rows; r += 2) {
    int8x16_t* to = packed->pairs[r / 2];
    const int8_t* row = x + r * x_stride;
    for (size_t g = 0; g < groups; g += 4, to += 2) {
      const int64x2_t first = vreinterpretq_s64_s8(vld1q_s8(row + g * 4));
      const int64x2_t second =
          r + 1 < rows ? vreinterpretq_s64_s8(vld1q_s8(row + x_stride + g * 4)) : vdupq_n_s64(0);
      to[0] = vreinterpretq_s8_s64(vzip1q_s64(first, second));
      to[1] = vreinterpretq_s8_s64(vzip2q_s64(first, second));
    }
  }
}

/// Adds the products of kPairs pairs of rows with kHalves half blocks, from `weight` on.
template <size_t kPairs, size_t kHalves>
void add_tile(const PackedRows& x, size_t pair, const int8_t* weight, size_t groups, size_t column,
              PairSums* sums) {
  int32x4_t* to = sums->pairs[pair] + column;
  constexpr size_t kToStride = kSumBlocks * 4;
  int32x4_t acc[kPairs][2 * kHalves];
#pragma GCC unroll 9
  for (size_t p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
    for (size_t c = 0; c < 2 * kHalves; ++c) acc[p][c] = to[p * kToStride + c];
  }
  // Columns of two groups, of which the second may be missing.
  const int8x16_t* from = x.pairs[pair];
  const int8_t* w = weight;
  const auto add_eight = [&](bool whole) __attribute__((always_inline)) {
    int8x16_t xs[kPairs];
#pragma GCC unroll 9
    for (size_t p = 0; p < kPairs; ++p) xs[p] = from[p * kPackedEights];
#pragma GCC unroll 2
    for (size_t h = 0; h < kHalves; ++h) {
      const int32x4_t first = vreinterpretq_s32_s8(vld1q_s8(w + h * 16));
      const int32x4_t second =
          whole ? vreinterpretq_s32_s8(vld1q_s8(w + kBlockBytes + h * 16)) : vdupq_n_s32(0);
      const int8x16_t low = vreinterpretq_s8_s32(vzip1q_s32(first, second));
      const int8x16_t high = vreinterpretq_s8_s32(vzip2q_s32(first, second));
#pragma GCC unroll 9
      for (size_t p = 0; p < kPairs; ++p) {
        acc[p][2 * h] = vmmlaq_s32(acc[p][2 * h], xs[p], low);
        acc[p][2 * h + 1] = vmmlaq_s32(acc[p][2 * h + 1], xs[p], high);
      }
    }
  };
  for (size_t left = groups / 2; left != 0; --left, ++from, w += 2 * kBlockBytes) add_eight(true);
  if (groups % 2 != 0) add_eight(false);
#pragma GCC unroll 9
  for (size_t p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
    for (size_t c = 0; c < 2 * kHalves; ++c) to[p * kToStride + c] = acc[p][c];
  }
}

// Up to four pairs take a whole block at a time, up to nine half of it: 18 registers for sums, and
// enough for the rest.
constexpr size_t kTilePairs = 9;

template <size_t kPairs>
void add_pairs(const PackedRows& x, size_t pair, const int8_t* weight, size_t groups, size_t column,
               PairSums* sums) {
  if constexpr (kPairs <= 4) {
    add_tile<kPairs, 2>(x, pair, weight, groups, column, sums);
  } else {
    add_tile<kPairs, 1>(x, pair, weight, groups, column, sums);
    add_tile<kPairs, 1>(x, pair, weight + 16, groups, column + 2, sums);
  }
}

constexpr decltype(&add_pairs<1>) kAddPairs[kTilePairs + 1] = {
    nullptr,      add_pairs<1>, add_pairs<2>, add_pairs<3>, add_pairs<4>,
    add_pairs<5>, add_pairs<6>, add_pairs<7>, add_pairs<8>, add_pairs<9>};

/// One block of channels for all pairs of rows, in tiles of about the same size.
void add_block(const PackedRows& x, size_t pairs, const int8_t* weight, size_t groups,
               size_t column, PairSums* sums) {
  for (size_t p = 0, tiles = (pairs + kTilePairs - 1) / kTilePairs; tiles != 0; --tiles) {
    const size_t count = (pairs - p) / tiles;
    kAddPairs[count](x, p, weight, groups, column, sums);
    p += count;
  }
}

/// A row of one block from the sums of its pair: those of two channels are half of each register.
[[gnu::always_inline]] inline void take_row(const int32x4_t* pair, size_t row,
                                            int32x4_t (&sums)[1][2]) {
#pragma GCC unroll 2
  for (size_t h = 0; h < 2; ++h) {
    const int64x2_t low = vreinterpretq_s64_s32(pair[2 * h]);
    const int64x2_t high = vreinterpretq_s64_s32(pair[2 * h + 1]);
    sums[0][h] = vreinterpretq_s32_s64(row == 0 ? vzip1q_s64(low, high) : vzip2q_s64(low, high));
  }
}

/// One block of channels of all rows.
void store_block(const LinearSlice<int8_t, int8_t>& s, size_t row, size_t rows, size_t channel,
                 const PairSums& sums, size_t column) {
  // What is the same for all rows, which the compiler cannot know: y might be the scales.
  const float* x_scales = s.x_scales + row;
  const bool whole = channel + kBlockRows <= s.channels;
  float scales[kBlockRows] = {}, bias[kBlockRows] = {};
  for (size_t c = 0; c < kBlockRows && channel + c < s.channels; ++c) {
    scales[c] = s.weight_scales[channel + c];
    if (s.bias != nullptr) bias[c] = s.bias[channel + c];
  }
  float* y = s.y + row * s.y_stride + channel;
  const size_t y_stride = s.y_stride;
  const float32x4_t scale[2] = {vld1q_f32(scales), vld1q_f32(scales + 4)};
  const float32x4_t add[2] = {vld1q_f32(bias), vld1q_f32(bias + 4)};
  const auto store_row = [&](size_t r, size_t parity) __attribute__((always_inline)) {
    int32x4_t of_row[1][2];
    take_row(sums.pairs[r / 2] + column, parity, of_row);
    float32x4_t result[2];
#pragma GCC unroll 2
    for (size_t h = 0; h < 2; ++h) {
      result[h] = vaddq_f32(
          vmulq_f32(vcvtq_f32_s32(of_row[0][h]), vmulq_n_f32(scale[h], x_scales[r])), add[h]);
    }
    if (whole) {
      vst1q_f32(y, result[0]);
      vst1q_f32(y + 4, result[1]);
    } else {
      float eight[kBlockRows];
      vst1q_f32(eight, result[0]);
      vst1q_f32(eight + 4, result[1]);
      for (size_t c = 0; channel + c < s.channels; ++c) y[c] = eight[c];
    }
    y += y_stride;
  };
  size_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    store_row(r, 0);
    store_row(r + 1, 1);
  }
  if (r < rows) store_row(r, 0);
}

/// At most 2 * kPackedPairs rows.
void linear_packed(const LinearSlice<int8_t, int8_t>& s, size_t row, size_t rows) {
  const size_t groups = group_count(s), pairs = (rows + 1) / 2;
  PackedRows x;
  PairSums sums;
  for (size_t n = 0; n < s.channels; n += kSumBlocks * kBlockRows) {
    const size_t blocks = smaller(kSumBlocks, (s.channels - n + kBlockRows - 1) / kBlockRows);
    for (size_t p = 0; p < pairs; ++p) {
      for (size_t c = 0; c < blocks * 4; ++c) sums.pairs[p][c] = vdupq_n_s32(0);
    }
    for (size_t g = 0; g < groups; g += kPackedGroups) {
      const size_t part = smaller(kPackedGroups, groups - g);
      // Where everything fits, what was packed for the first channels serves them all.
      if (n == 0 || groups > kPackedGroups) {
        pack(s.x + row * s.x_stride + g * kBlockColumns, s.x_stride, rows, part, &x);
      }
      for (size_t b = 0; b < blocks; ++b) {
        const int8_t* weight =
            s.weight + (n / kBlockRows + b) * groups * kBlockBytes + g * kBlockBytes;
        add_block(x, pairs, weight, part, b * 4, &sums);
      }
    }
    for (size_t b = 0; b < blocks; ++b) {
      store_block(s, row, rows, n + b * kBlockRows, sums, b * 4);
    }
  }
}

}  // namespace

void linear_i8_i8_f32_neon_i8mm(const LinearSlice<int8_t, int8_t>& s) {
  if (s.rows == 1) {
    linear_i8_i8_f32_neon_dotprod(s);
    return;
  }
  for (size_t m = 0; m < s.rows; m += 2 * kPackedPairs) {
    linear_packed(s, m, smaller(2 * kPackedPairs, s.rows - m));
  }
}

}  // namespace oxbow
