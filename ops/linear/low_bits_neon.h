#pragma once

// The kernels for int4 and ternary weights on ARM. How four columns of four channels are multiplied and added is a struct
//
//   using Sum;
//   static Sum zero();
//   static Sum add(Sum sum, int8x16_t codes, int8x16_t columns, size_t quad);   columns 4 quad to 4 quad + 3
//   static int32x4_t finish(Sum sum);
//
// where a sum may have 16 bits: kMostAdded products of codes up to 15, four times as many up to 3. In an unnamed namespace
// as all of low_bits.h.

#if defined(__ARM_NEON)

#include "ops/common/neon.h"
#include "ops/linear/low_bits.h"

namespace oxbow {
namespace {

constexpr size_t kQuads = 4;
constexpr size_t kHalves = 2;
constexpr size_t kMostAdded = 8;
static_assert(kMostAdded * 2 * 15 * 128 <= INT16_MAX);
/// Blocks of columns of ternary weights before sums become 32 bits wide.
constexpr size_t kTernaryStrip = 8;
static_assert(kTernaryStrip * kQuads * 3 <= kMostAdded * 15);

[[gnu::always_inline]] inline int8x16_t low_half(uint8x16_t bytes) {
  return vreinterpretq_s8_u8(vandq_u8(bytes, vdupq_n_u8(15)));
}
[[gnu::always_inline]] inline int8x16_t high_half(uint8x16_t bytes) {
  return vreinterpretq_s8_u8(vshrq_n_u8(bytes, 4));
}
[[gnu::always_inline]] inline int8x16_t two_bits(uint8x16_t bytes, size_t quad) {
  const uint8x16_t mask = vdupq_n_u8(3);
  switch (quad) {
    case 0:
      return vreinterpretq_s8_u8(vandq_u8(bytes, mask));
    case 1:
      return vreinterpretq_s8_u8(vandq_u8(vshrq_n_u8(bytes, 2), mask));
    case 2:
      return vreinterpretq_s8_u8(vandq_u8(vshrq_n_u8(bytes, 4), mask));
    default:
      return vreinterpretq_s8_u8(vshrq_n_u8(bytes, 6));
  }
}

/// results + bias for the last channels, fewer than eight. Called: there is one such block among all.
[[gnu::noinline]] inline void store_last(float32x4_t low, float32x4_t high, const float* bias,
                                         size_t count, float* y) {
  float eight[kBlockRows];
  vst1q_f32(eight, low);
  vst1q_f32(eight + 4, high);
  for (size_t c = 0; c < count; ++c) y[c] = eight[c] + (bias == nullptr ? 0.0f : bias[c]);
}

/// The same for as many channels as there are.
inline void store_eight(float32x4_t low, float32x4_t high, const float* bias, size_t count,
                        float* y) {
  if (count >= kBlockRows) {
    const float32x4_t zero = vdupq_n_f32(0.0f);
    vst1q_f32(y, vaddq_f32(low, bias == nullptr ? zero : vld1q_f32(bias)));
    vst1q_f32(y + 4, vaddq_f32(high, bias == nullptr ? zero : vld1q_f32(bias + 4)));
    return;
  }
  store_last(low, high, bias, count, y);
}

/// Int4 weights with mins or without, of which one function for both takes the bytes: it is a branch against kilobytes.
struct I4Slice : LinearSlice<int8_t, uint8_t> {
  template <typename Block>
  explicit I4Slice(const LinearSlice<int8_t, Block>& s)
      : LinearSlice<int8_t, uint8_t>{.rows = s.rows,
                                     .channels = s.channels,
                                     .depth = s.depth,
                                     .x = s.x,
                                     .x_stride = s.x_stride,
                                     .x_scales = s.x_scales,
                                     .x_groups = s.x_groups,
                                     .weight = reinterpret_cast<const uint8_t*>(s.weight),
                                     .bias = s.bias,
                                     .y = s.y,
                                     .y_stride = s.y_stride},
        block_bytes(sizeof(Block)),
        has_mins(kHasMin<Block>) {}

  size_t block_bytes;
  bool has_mins;
};

/// kRows rows by kBlocks blocks of channels, which are `distance` blocks apart; x has the rows from `row` on.
template <typename Dot, size_t kRows, size_t kBlocks>
void i4_tile(const I4Slice& s, const I4Rows& x, size_t row, size_t block, size_t distance) {
  const uint8_t* weight = s.weight + block * x.blocks * s.block_bytes;
  float32x4_t acc[kRows][kBlocks][kHalves];
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows * kBlocks; ++i) {
    acc[i / kBlocks][i % kBlocks][0] = acc[i / kBlocks][i % kBlocks][1] = vdupq_n_f32(0.0f);
  }
  for (size_t g = 0; g < x.blocks; ++g) {
    int8x16_t low[kRows], high[kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      const int8_t* columns = x.columns(r, g);
      low[r] = vld1q_s8(columns);
      high[r] = vld1q_s8(columns + 16);
    }
#pragma GCC unroll 4
    for (size_t b = 0; b < kBlocks; ++b) {
      const uint8_t* at = weight + (b * distance * x.blocks + g) * s.block_bytes;
      const uint8_t* codes = at + s.block_bytes - sizeof(I4Block::codes);
      const float32x4x2_t scales = load_f16(reinterpret_cast<const F16*>(at));
      const float32x4_t(&wide)[kHalves] = scales.val;
      float32x4x2_t mins = {};
      if (s.has_mins) mins = load_f16(reinterpret_cast<const F16*>(at) + kBlockRows);
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) {
        typename Dot::Sum sums[kRows];
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) sums[r] = Dot::zero();
#pragma GCC unroll 4
        for (size_t j = 0; j < kQuads; ++j) {
          const uint8x16_t bytes = vld1q_u8(codes + j * 32 + h * 16);
          const int8x16_t low_codes = low_half(bytes), high_codes = high_half(bytes);
#pragma GCC unroll 4
          for (size_t r = 0; r < kRows; ++r) {
            sums[r] = Dot::add(sums[r], low_codes, low[r], j);
            sums[r] = Dot::add(sums[r], high_codes, high[r], j);
          }
        }
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) {
          const int32_t x_sum = x.sums[r][g], offset = s.has_mins ? 0 : kI4Offset * x_sum;
          const int32x4_t exact = vsubq_s32(Dot::finish(sums[r]), vdupq_n_s32(offset));
          float32x4_t part = vmulq_f32(vcvtq_f32_s32(exact), wide[h]);
          if (s.has_mins) {
            part = vaddq_f32(part, vmulq_n_f32(mins.val[h], static_cast<float>(x_sum)));
          }
          acc[r][b][h] = vaddq_f32(acc[r][b][h], vmulq_n_f32(part, x.scales.of(r, g)));
        }
      }
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t b = 0; b < kBlocks; ++b) {
      const size_t channel = (block + b * distance) * kBlockRows;
      const float scale = row_scale(s, row + r);
      store_eight(vmulq_n_f32(acc[r][b][0], scale), vmulq_n_f32(acc[r][b][1], scale),
                  s.bias == nullptr ? nullptr : s.bias + channel, s.channels - channel,
                  s.y + (row + r) * s.y_stride + channel);
    }
  }
}

/// All channels of kRows rows, kBlocks distant blocks at a time as far as they go.
template <typename Dot, size_t kRows, size_t kBlocks>
void i4_rows(const I4Slice& s, const I4Rows& x, size_t row) {
  for_distant_blocks<kBlocks>(s.channels, [&]<size_t kCount>(size_t first, size_t distance) {
    i4_tile<Dot, kRows, kCount>(s, x, row, first, distance);
  });
}

template <typename Dot>
void linear_i4(const I4Slice& s) {
  I4Rows x;
  size_t m = 0;
  for (; m + kLowBitRows <= s.rows; m += kLowBitRows) {
    take_rows(s, m, kLowBitRows, &x);
    i4_rows<Dot, kLowBitRows, 1>(s, x, m);
  }
  for (; m < s.rows; ++m) {
    take_rows(s, m, 1, &x);
    i4_rows<Dot, 1, 4>(s, x, m);
  }
}

template <typename Dot, size_t kRows, size_t kBlocks>
void ternary_tile(const LinearSlice<int8_t, TernaryBlock>& s, size_t row, size_t block,
                  size_t distance, const int32_t (&offsets)[kRows]) {
  const size_t blocks = (s.depth + kTernaryBlockColumns - 1) / kTernaryBlockColumns;
  const int8_t* x = s.x + row * s.x_stride;
  int32x4_t acc[kRows][kBlocks][kHalves];
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows * kBlocks * kHalves; ++i) {
    acc[i / kHalves / kBlocks][i / kHalves % kBlocks][i % kHalves] = vdupq_n_s32(0);
  }
  for (size_t first = 0; first < blocks; first += kTernaryStrip) {
    const size_t end = blocks - first < kTernaryStrip ? blocks : first + kTernaryStrip;
#pragma GCC unroll 4
    for (size_t b = 0; b < kBlocks; ++b) {
      const TernaryBlock* weight = s.weight + (block + b * distance) * blocks;
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) {
        typename Dot::Sum sums[kRows];
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) sums[r] = Dot::zero();
        for (size_t g = first; g < end; ++g) {
          const uint8x16_t bytes = vld1q_u8(weight[g].codes + h * 16);
          int8x16_t columns[kRows];
#pragma GCC unroll 4
          for (size_t r = 0; r < kRows; ++r) {
            columns[r] = vld1q_s8(x + r * s.x_stride + g * kTernaryBlockColumns);
          }
#pragma GCC unroll 4
          for (size_t j = 0; j < kQuads; ++j) {
            const int8x16_t codes = two_bits(bytes, j);
#pragma GCC unroll 4
            for (size_t r = 0; r < kRows; ++r) sums[r] = Dot::add(sums[r], codes, columns[r], j);
          }
        }
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) {
          acc[r][b][h] = vaddq_s32(acc[r][b][h], Dot::finish(sums[r]));
        }
      }
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t b = 0; b < kBlocks; ++b) {
      const size_t channel = (block + b * distance) * kBlockRows;
      const size_t count = s.channels - channel;
      float scales[kBlockRows] = {};
      for (size_t c = 0; c < kBlockRows && c < count; ++c) scales[c] = s.weight_scales[channel + c];
      float32x4_t results[kHalves];
#pragma GCC unroll 2
      for (size_t h = 0; h < kHalves; ++h) {
        const int32x4_t exact = vsubq_s32(acc[r][b][h], vdupq_n_s32(offsets[r]));
        results[h] = vmulq_f32(vcvtq_f32_s32(exact),
                               vmulq_n_f32(vld1q_f32(scales + 4 * h), s.x_scales[row + r]));
      }
      store_eight(results[0], results[1], s.bias == nullptr ? nullptr : s.bias + channel, count,
                  s.y + (row + r) * s.y_stride + channel);
    }
  }
}

template <typename Dot, size_t kRows, size_t kBlocks>
void ternary_rows(const LinearSlice<int8_t, TernaryBlock>& s, size_t row) {
  int32_t offsets[kRows];
  for (size_t r = 0; r < kRows; ++r) {
    offsets[r] = kTernaryOffset * sum_of(s.x + (row + r) * s.x_stride, s.depth);
  }
  for_distant_blocks<kBlocks>(s.channels, [&]<size_t kCount>(size_t first, size_t distance) {
    ternary_tile<Dot, kRows, kCount>(s, row, first, distance, offsets);
  });
}

template <typename Dot>
void linear_ternary(const LinearSlice<int8_t, TernaryBlock>& s) {
  size_t m = 0;
  for (; m + kLowBitRows <= s.rows; m += kLowBitRows) ternary_rows<Dot, kLowBitRows, 1>(s, m);
  for (; m < s.rows; ++m) ternary_rows<Dot, 1, 4>(s, m);
}

}  // namespace
}  // namespace oxbow

#endif  // __ARM_NEON
