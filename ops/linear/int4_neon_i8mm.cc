// NEON with int8 matrix products: smmla takes two rows by eight columns of both sides, so that eight rows share codes that are
// unpacked and zipped into that shape. Fewer rows are left to dot products.

#include "ops/linear/low_bits_neon.h"

namespace oxbow {
namespace {

constexpr size_t kMmlaPairs = 4;
constexpr size_t kMmlaRows = 2 * kMmlaPairs;

/// Eight rows of x in whole blocks of columns.
struct EightRows {
  const int8_t* x;
  size_t x_stride;
  /// Of these blocks x has all columns; behind them may be one that `last` has.
  size_t whole, blocks;
  BlockScales scales;
  int8_t last[kMmlaRows][kI4BlockColumns];
  /// Of each block; with mins only.
  float sums[kMostI4Blocks][kMmlaRows];
};

void take_eight(const I4Slice& s, size_t row, EightRows* rows) {
  rows->x = s.x + row * s.x_stride;
  rows->x_stride = s.x_stride;
  rows->whole = s.depth / kI4BlockColumns;
  rows->blocks = (s.depth + kI4BlockColumns - 1) / kI4BlockColumns;
  rows->scales = block_scales(s, row);
  for (size_t r = 0; r < kMmlaRows; ++r) {
    const int8_t* x = rows->x + r * s.x_stride;
    if (rows->whole < rows->blocks) {
      const size_t first = rows->whole * kI4BlockColumns;
      __builtin_memset(rows->last[r], 0, kI4BlockColumns);
      __builtin_memcpy(rows->last[r], x + first, s.depth - first);
    }
    for (size_t g = 0; g < rows->blocks && s.has_mins; ++g) {
      const int8_t* columns = g < rows->whole ? x + g * kI4BlockColumns : rows->last[r];
      rows->sums[g][r] = static_cast<float>(sum_of(columns, kI4BlockColumns));
    }
  }
}

/// Two neighbouring quads of four channels as two channels by eight columns, twice.
struct ChannelPairs {
  int8x16_t first, second;
};
[[gnu::always_inline]] inline ChannelPairs zip_quads(int8x16_t even, int8x16_t odd) {
  const int32x4_t a = vreinterpretq_s32_s8(even), b = vreinterpretq_s32_s8(odd);
  return {vreinterpretq_s8_s32(vzip1q_s32(a, b)), vreinterpretq_s8_s32(vzip2q_s32(a, b))};
}

[[gnu::always_inline]] inline float32x4_t load_four_f16(const F16* from) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&from->bits)));
}

/// Columns 8 i to 8 i + 7 of two rows of 16.
[[gnu::always_inline]] inline int8x16_t zip_rows(int8x16_t even, int8x16_t odd, size_t i) {
  const int64x2_t a = vreinterpretq_s64_s8(even), b = vreinterpretq_s64_s8(odd);
  return vreinterpretq_s8_s64(i == 0 ? vzip1q_s64(a, b) : vzip2q_s64(a, b));
}

/// A number for each row times a vector for each row.
[[gnu::always_inline]] inline float32x4_t by_row(float32x4_t vector, const float32x4_t (&of)[2],
                                                 size_t row) {
  switch (row % 4) {
    case 0:
      return vmulq_laneq_f32(vector, of[row / 4], 0);
    case 1:
      return vmulq_laneq_f32(vector, of[row / 4], 1);
    case 2:
      return vmulq_laneq_f32(vector, of[row / 4], 2);
    default:
      return vmulq_laneq_f32(vector, of[row / 4], 3);
  }
}

/// Four channels, from `channel` on, of eight rows, the first of which is `row`.
void i4_half(const I4Slice& s, const EightRows& x, size_t row, size_t channel) {
  const size_t h = channel % kBlockRows / 4;
  const uint8_t* at = s.weight + channel / kBlockRows * x.blocks * s.block_bytes;
  const int8x16_t offset = vdupq_n_s8(s.has_mins ? 0 : kI4Offset);
  float32x4_t acc[kMmlaRows];
#pragma GCC unroll 8
  for (size_t r = 0; r < kMmlaRows; ++r) acc[r] = vdupq_n_f32(0.0f);
  float32x4_t scales[2] = {vdupq_n_f32(1.0f), vdupq_n_f32(1.0f)}, sums[2] = {};
  for (size_t g = 0; g < x.blocks; ++g, at += s.block_bytes) {
    const uint8_t* codes = at + s.block_bytes - sizeof(I4Block::codes) + h * 16;
    int8x16_t quads[2][kQuads];
#pragma GCC unroll 4
    for (size_t j = 0; j < kQuads; ++j) {
      const uint8x16_t bytes = vld1q_u8(codes + j * 32);
      quads[0][j] = vsubq_s8(low_half(bytes), offset);
      quads[1][j] = vsubq_s8(high_half(bytes), offset);
    }
    ChannelPairs pairs[kQuads];
#pragma GCC unroll 4
    for (size_t i = 0; i < kQuads; ++i) {
      pairs[i] = zip_quads(quads[i / 2][i % 2 * 2], quads[i / 2][i % 2 * 2 + 1]);
    }
    const float32x4_t scale = load_four_f16(reinterpret_cast<const F16*>(at) + 4 * h);
    float32x4_t least = vdupq_n_f32(0.0f);
    if (s.has_mins) {
      least = load_four_f16(reinterpret_cast<const F16*>(at) + kBlockRows + 4 * h);
      sums[0] = vld1q_f32(x.sums[g]);
      sums[1] = vld1q_f32(x.sums[g] + 4);
    }
    if (x.scales.block_step != 0) {
      float eight[kMmlaRows];
      for (size_t r = 0; r < kMmlaRows; ++r) eight[r] = x.scales.of(r, g);
      scales[0] = vld1q_f32(eight);
      scales[1] = vld1q_f32(eight + 4);
    }
    const bool is_whole = g < x.whole;
    const int8_t* columns = is_whole ? x.x + g * kI4BlockColumns : x.last[0];
    const size_t stride = is_whole ? x.x_stride : kI4BlockColumns;
#pragma GCC unroll 4
    for (size_t p = 0; p < kMmlaPairs; ++p, columns += 2 * stride) {
      const int8x16_t even[2] = {vld1q_s8(columns), vld1q_s8(columns + 16)};
      const int8x16_t odd[2] = {vld1q_s8(columns + stride), vld1q_s8(columns + stride + 16)};
      int32x4_t first = vdupq_n_s32(0), second = vdupq_n_s32(0);
#pragma GCC unroll 4
      for (size_t i = 0; i < kQuads; ++i) {
        const int8x16_t both = zip_rows(even[i / 2], odd[i / 2], i % 2);
        first = vmmlaq_s32(first, both, pairs[i].first);
        second = vmmlaq_s32(second, both, pairs[i].second);
      }
      const int64x2_t a = vreinterpretq_s64_s32(first), b = vreinterpretq_s64_s32(second);
      const int32x4_t exact[2] = {vreinterpretq_s32_s64(vuzp1q_s64(a, b)),
                                  vreinterpretq_s32_s64(vuzp2q_s64(a, b))};
#pragma GCC unroll 2
      for (size_t i = 0; i < 2; ++i) {
        const size_t r = 2 * p + i;
        float32x4_t part = vmulq_f32(vcvtq_f32_s32(exact[i]), scale);
        if (s.has_mins) part = vaddq_f32(part, by_row(least, sums, r));
        acc[r] = vaddq_f32(acc[r], by_row(part, scales, r));
      }
    }
  }
  const size_t count = s.channels - channel < 4 ? s.channels - channel : 4;
#pragma GCC unroll 8
  for (size_t r = 0; r < kMmlaRows; ++r) {
    const float32x4_t result = vmulq_n_f32(acc[r], row_scale(s, row + r));
    float* y = s.y + (row + r) * s.y_stride + channel;
    if (count == 4) {
      const float32x4_t zero = vdupq_n_f32(0.0f);
      vst1q_f32(y, vaddq_f32(result, s.bias == nullptr ? zero : vld1q_f32(s.bias + channel)));
      continue;
    }
    float four[4];
    vst1q_f32(four, result);
    for (size_t c = 0; c < count; ++c) {
      y[c] = four[c] + (s.bias == nullptr ? 0.0f : s.bias[channel + c]);
    }
  }
}

/// All rows but the last, fewer than eight, of which there are so many.
size_t i4_eights(const I4Slice& s) {
  EightRows x;
  size_t m = 0;
  for (; m + kMmlaRows <= s.rows; m += kMmlaRows) {
    take_eight(s, m, &x);
    for (size_t channel = 0; channel < s.channels; channel += 4) i4_half(s, x, m, channel);
  }
  return s.rows - m;
}

/// The last rows of a slice.
template <typename Block>
LinearSlice<int8_t, Block> last_rows(LinearSlice<int8_t, Block> s, size_t rows) {
  const size_t first = s.rows - rows;
  s.rows = rows;
  s.x += first * s.x_stride;
  s.x_scales += first * s.x_groups;
  s.y += first * s.y_stride;
  return s;
}

}  // namespace

void linear_i8_i4_f32_neon_i8mm(const LinearSlice<int8_t, I4Block>& s) {
  const size_t rest = i4_eights(I4Slice(s));
  if (rest != 0) linear_i8_i4_f32_neon_dotprod(last_rows(s, rest));
}
void linear_i8_i4min_f32_neon_i8mm(const LinearSlice<int8_t, I4MinBlock>& s) {
  const size_t rest = i4_eights(I4Slice(s));
  if (rest != 0) linear_i8_i4min_f32_neon_dotprod(last_rows(s, rest));
}

}  // namespace oxbow
