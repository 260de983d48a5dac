// Dot products serve both sides: sixteen columns of a query and a key, and four keys by four columns
// of the values. Weights have 16 bits, so they come as two int8, and their products are added apart.

#include "ops/attention/attention.h"
#include "ops/attention/generic.h"
#include "ops/attention/neon.h"

namespace oxbow {
namespace {

struct AddDots {
  [[gnu::always_inline]] static int32x4_t add(int32x4_t sum, int8x16_t x, int8x16_t row) {
    return vdotq_s32(sum, x, row);
  }
};

/// Weights as -(256 high + low), of which only the negative reaches the largest weight. The least
/// that it reaches is -32639: scales of values are not negative unless a file says so.
struct SplitWeights {
  int8_t high[kAttentionTile];
  int8_t low[kAttentionTile];
};
constexpr int16_t kLeastSplitWeight = -32639;

/// False when a weight cannot be split. Those past `count` are zero, up to a multiple of eight.
bool split(const int16_t* weights, size_t count, SplitWeights* to) {
  int16x8_t least = vdupq_n_s16(0);
  for (size_t j = 0; j < count; j += 8) {
    int16_t eight[8] = {};
    for (size_t i = 0; i < 8 && j + i < count; ++i) eight[i] = weights[j + i];
    const int16x8_t w = vld1q_s16(count - j >= 8 ? weights + j : eight);
    least = vminq_s16(least, w);
    const int16x8_t negative = vnegq_s16(w);
    vst1_s8(to->high + j, vrshrn_n_s16(negative, 8));
    vst1_s8(to->low + j, vmovn_s16(negative));
  }
  return vminvq_s16(least) >= kLeastSplitWeight;
}

[[gnu::always_inline]] inline int8x16_t repeat_four(const int8_t* codes) {
  int32_t four;
  __builtin_memcpy(&four, codes, sizeof(four));
  return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

/// 16 * kParts columns of all values.
template <size_t kParts>
void accumulate_split(const SplitWeights& weights, const int8_t* rows, size_t stride, size_t count,
                      int32_t* acc) {
  int32x4_t high[4 * kParts], low[4 * kParts];
#pragma GCC unroll 8
  for (size_t i = 0; i < 4 * kParts; ++i) high[i] = low[i] = vdupq_n_s32(0);
  for (size_t j = 0; j < count; j += 4, rows += 4 * stride) {
    // Rows that are missing have weight zero; the first is read in their place.
    const int8_t* row1 = j + 1 < count ? rows + stride : rows;
    const int8_t* row2 = j + 2 < count ? rows + 2 * stride : rows;
    const int8_t* row3 = j + 3 < count ? rows + 3 * stride : rows;
    const int8x16_t w_high = repeat_four(weights.high + j), w_low = repeat_four(weights.low + j);
#pragma GCC unroll 2
    for (size_t p = 0; p < kParts; ++p) {
      const int8x16_t v0 = vld1q_s8(rows + 16 * p), v1 = vld1q_s8(row1 + 16 * p);
      const int8x16_t v2 = vld1q_s8(row2 + 16 * p), v3 = vld1q_s8(row3 + 16 * p);
      const int16x8_t a = vreinterpretq_s16_s8(vzip1q_s8(v0, v1));
      const int16x8_t b = vreinterpretq_s16_s8(vzip2q_s8(v0, v1));
      const int16x8_t c = vreinterpretq_s16_s8(vzip1q_s8(v2, v3));
      const int16x8_t d = vreinterpretq_s16_s8(vzip2q_s8(v2, v3));
      // Four columns each, of four values.
      const int16x8_t columns[4] = {vzip1q_s16(a, c), vzip2q_s16(a, c), vzip1q_s16(b, d),
                                    vzip2q_s16(b, d)};
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; ++i) {
        const int8x16_t values = vreinterpretq_s8_s16(columns[i]);
        high[4 * p + i] = vdotq_s32(high[4 * p + i], values, w_high);
        low[4 * p + i] = vdotq_s32(low[4 * p + i], values, w_low);
      }
    }
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < 4 * kParts; ++i) {
    const int32x4_t sum = vaddq_s32(vshlq_n_s32(high[i], 8), low[i]);
    vst1q_s32(acc + 4 * i, vsubq_s32(vld1q_s32(acc + 4 * i), sum));
  }
}

/// The primitives of generic.h for int8.
struct Dotprod {
  static void dots(const int16_t* x, const int8_t* rows, ptrdiff_t stride, size_t count,
                   size_t head_width, int32_t* dots) {
    query_dots<AddDots>(x, rows, stride, count, head_width, dots);
  }

  static void accumulate(const int16_t* weights, const int8_t* rows, size_t stride, size_t count,
                         size_t head_width, int32_t* acc) {
    SplitWeights halves;
    if (head_width < 16 || !split(weights, count, &halves)) {
      Neon<AddDots>::accumulate(weights, rows, stride, count, head_width, acc);
      return;
    }
    size_t d = 0;
    for (; d + 32 <= head_width; d += 32) {
      accumulate_split<2>(halves, rows + d, stride, count, acc + d);
    }
    if (d + 16 <= head_width) {
      accumulate_split<1>(halves, rows + d, stride, count, acc + d);
      d += 16;
    }
    if (d < head_width) accumulate_end(weights, rows, stride, count, head_width, d, acc);
  }
};

}  // namespace

const AttentionKernel<int8_t> attention_f32_i8_f32_neon_dotprod = Int8Attention<Dotprod>::kKernel;

}  // namespace oxbow
