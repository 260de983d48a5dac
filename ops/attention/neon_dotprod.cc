// Dot products serve both sides: sixteen columns of a query and a key, and four keys by four columns
// of the values. Weights have 16 bits, so they come as two int8, and their products are added apart.
// For blocks of queries keys and values are laid side by side once, four bytes of a key or of four keys to
// a lane, and four queries take them at a time.

#include "ops/attention/attention.h"
#include "ops/attention/generic.h"
#include "ops/attention/neon.h"
#ifndef OXB_WITHOUT_BLOCKS
#include "ops/attention/block.h"
#endif

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
    const bool whole = count - j >= 8;
    int16_t eight[8] = {};
    for (size_t i = 0; !whole && j + i < count; ++i) eight[i] = weights[j + i];
    const int16x8_t w = vld1q_s16(whole ? weights + j : eight);
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

/// Sixteen columns of four values: four of them to a register, each with its four values.
[[gnu::always_inline]] inline void lay_four(const int8_t* const (&rows)[4], size_t at,
                                            int8x16_t (&columns)[4]) {
  const int8x16_t v0 = vld1q_s8(rows[0] + at), v1 = vld1q_s8(rows[1] + at);
  const int8x16_t v2 = vld1q_s8(rows[2] + at), v3 = vld1q_s8(rows[3] + at);
  const int16x8_t a = vreinterpretq_s16_s8(vzip1q_s8(v0, v1));
  const int16x8_t b = vreinterpretq_s16_s8(vzip2q_s8(v0, v1));
  const int16x8_t c = vreinterpretq_s16_s8(vzip1q_s8(v2, v3));
  const int16x8_t d = vreinterpretq_s16_s8(vzip2q_s8(v2, v3));
  columns[0] = vreinterpretq_s8_s16(vzip1q_s16(a, c));
  columns[1] = vreinterpretq_s8_s16(vzip2q_s16(a, c));
  columns[2] = vreinterpretq_s8_s16(vzip1q_s16(b, d));
  columns[3] = vreinterpretq_s8_s16(vzip2q_s16(b, d));
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
      int8x16_t columns[4];
      lay_four({rows, row1, row2, row3}, 16 * p, columns);
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; ++i) {
        high[4 * p + i] = vdotq_s32(high[4 * p + i], columns[i], w_high);
        low[4 * p + i] = vdotq_s32(low[4 * p + i], columns[i], w_low);
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

#ifndef OXB_WITHOUT_BLOCKS
/// Elements of a head whose keys or values are laid out at a time, and queries that take them.
constexpr size_t kPart = 64;
constexpr size_t kTileQueries = 4;
/// What is laid side by side: as many bytes to a key or an element.
constexpr size_t kFour = 4;
static_assert(kBlockQueries % kTileQueries == 0);

/// The first `count` rows, the last one again up to four.
[[gnu::always_inline]] inline const int8_t* row_of(const int8_t* rows, size_t stride, size_t count,
                                                   size_t j) {
  return rows + (j < count ? j : count - 1) * stride;
}

/// Elements [0, width) of `count` keys: fours[four elements][key], up to a multiple of sixteen keys.
void lay_keys(const int8_t* rows, size_t stride, size_t count, size_t width, int8_t* fours) {
  for (size_t j = 0; j < count; j += 4) {
    for (size_t d = 0; d < width; d += 16) {
      int32x4_t r[4];
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; ++i) {
        r[i] = vreinterpretq_s32_s8(vld1q_s8(row_of(rows, stride, count, j + i) + d));
      }
      const int64x2_t a = vreinterpretq_s64_s32(vtrn1q_s32(r[0], r[1]));
      const int64x2_t b = vreinterpretq_s64_s32(vtrn2q_s32(r[0], r[1]));
      const int64x2_t c = vreinterpretq_s64_s32(vtrn1q_s32(r[2], r[3]));
      const int64x2_t e = vreinterpretq_s64_s32(vtrn2q_s32(r[2], r[3]));
      const int64x2_t fours_of[4] = {vtrn1q_s64(a, c), vtrn1q_s64(b, e), vtrn2q_s64(a, c),
                                     vtrn2q_s64(b, e)};
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; ++i) {
        vst1q_s8(fours + ((d / 4 + i) * kAttentionTile + j) * kFour,
                 vreinterpretq_s8_s64(fours_of[i]));
      }
    }
  }
}

/// Elements [0, width) of `count` values: fours[four keys][element], kPart to four keys.
void lay_values(const int8_t* rows, size_t stride, size_t count, size_t width, int8_t* fours) {
  for (size_t j = 0; j < count; j += 4, fours += kPart * kFour) {
    const int8_t* const four[4] = {
        row_of(rows, stride, count, j), row_of(rows, stride, count, j + 1),
        row_of(rows, stride, count, j + 2), row_of(rows, stride, count, j + 3)};
    for (size_t d = 0; d < width; d += 16) {
      int8x16_t columns[4];
      lay_four(four, d, columns);
#pragma GCC unroll 4
      for (size_t i = 0; i < 4; ++i) vst1q_s8(fours + (d + 4 * i) * kFour, columns[i]);
    }
  }
}

/// acc[query][register] += dots of lane kLane of x[query] with the registers of one group.
template <int kLane, size_t kRegisters>
[[gnu::always_inline]] inline void add_group(const int8x16_t (&x)[kTileQueries],
                                             const int8x16_t (&group)[kRegisters],
                                             int32x4_t (&acc)[kTileQueries][kRegisters]) {
#pragma GCC unroll 4
  for (size_t q = 0; q < kTileQueries; ++q) {
#pragma GCC unroll 4
    for (size_t i = 0; i < kRegisters; ++i) {
      acc[q][i] = vdotq_laneq_s32(acc[q][i], group[i], x[q], kLane);
    }
  }
}

template <size_t kRegisters>
[[gnu::always_inline]] inline void load_group(const int8_t* from, int8x16_t (&group)[kRegisters]) {
#pragma GCC unroll 4
  for (size_t i = 0; i < kRegisters; ++i) group[i] = vld1q_s8(from + 16 * i);
}

/// dots[query][16 keys] = or += products of `width` elements.
[[gnu::noinline]] void dots_tile(const int8_t* const (&x)[kTileQueries], const int8_t* fours,
                                 size_t width, bool set, int32_t* const (&dots)[kTileQueries]) {
  int32x4_t acc[kTileQueries][4];
#pragma GCC unroll 4
  for (size_t q = 0; q < kTileQueries; ++q) {
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) acc[q][i] = set ? vdupq_n_s32(0) : vld1q_s32(dots[q] + 4 * i);
  }
  for (size_t d = 0; d < width; d += 16, fours += 4 * kAttentionTile * kFour) {
    int8x16_t codes[kTileQueries], group[4];
#pragma GCC unroll 4
    for (size_t q = 0; q < kTileQueries; ++q) codes[q] = vld1q_s8(x[q] + d);
    load_group(fours, group);
    add_group<0>(codes, group, acc);
    load_group(fours + kAttentionTile * kFour, group);
    add_group<1>(codes, group, acc);
    load_group(fours + 2 * kAttentionTile * kFour, group);
    add_group<2>(codes, group, acc);
    load_group(fours + 3 * kAttentionTile * kFour, group);
    add_group<3>(codes, group, acc);
  }
#pragma GCC unroll 4
  for (size_t q = 0; q < kTileQueries; ++q) {
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) vst1q_s32(dots[q] + 4 * i, acc[q][i]);
  }
}

/// sums[query][8 elements] -= products with the values of `count` keys, whose weights are -(256 high + low).
[[gnu::noinline]] void values_tile(const SplitWeights* const (&weights)[kTileQueries],
                                   const int8_t* fours, size_t count,
                                   int32_t* const (&sums)[kTileQueries]) {
  int32x4_t high[kTileQueries][2], low[kTileQueries][2];
#pragma GCC unroll 4
  for (size_t q = 0; q < kTileQueries; ++q) {
    high[q][0] = high[q][1] = vdupq_n_s32(0);
    low[q][0] = vnegq_s32(vld1q_s32(sums[q]));
    low[q][1] = vnegq_s32(vld1q_s32(sums[q] + 4));
  }
  for (size_t j = 0; j < count; j += 16, fours += 4 * kPart * kFour) {
    int8x16_t w_high[kTileQueries], w_low[kTileQueries], group[2];
#pragma GCC unroll 4
    for (size_t q = 0; q < kTileQueries; ++q) {
      w_high[q] = vld1q_s8(weights[q]->high + j);
      w_low[q] = vld1q_s8(weights[q]->low + j);
    }
    load_group(fours, group);
    add_group<0>(w_high, group, high);
    add_group<0>(w_low, group, low);
    load_group(fours + kPart * kFour, group);
    add_group<1>(w_high, group, high);
    add_group<1>(w_low, group, low);
    load_group(fours + 2 * kPart * kFour, group);
    add_group<2>(w_high, group, high);
    add_group<2>(w_low, group, low);
    load_group(fours + 3 * kPart * kFour, group);
    add_group<3>(w_high, group, high);
    add_group<3>(w_low, group, low);
  }
#pragma GCC unroll 4
  for (size_t q = 0; q < kTileQueries; ++q) {
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; ++i) {
      vst1q_s32(sums[q] + 4 * i, vnegq_s32(vaddq_s32(vshlq_n_s32(high[q][i], 8), low[q][i])));
    }
  }
}

/// exp_f32 in each lane, of numbers that are not positive: 2^n is then one factor, and what is too small need not be
/// bounded, since it becomes 0 in the end.
[[gnu::always_inline]] inline float32x4_t exp_lanes(float32x4_t x) {
  const float32x4_t magic = vdupq_n_f32(kRoundMagic);
  const float32x4_t shifted = vaddq_f32(vmulq_n_f32(x, 1.44269504088896341f), magic);
  const float32x4_t n = vsubq_f32(shifted, magic);
  const float32x4_t r =
      vsubq_f32(vsubq_f32(x, vmulq_n_f32(n, 0.693359375f)), vmulq_n_f32(n, -2.12194440e-4f));
  constexpr float kFactors[] = {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                                1.6666665459e-1f, 5.0000001201e-1f};
  float32x4_t p = vdupq_n_f32(1.9875691500e-4f);
#pragma GCC unroll 5
  for (float factor : kFactors) p = vaddq_f32(vmulq_f32(p, r), vdupq_n_f32(factor));
  const float32x4_t e = vaddq_f32(vaddq_f32(vmulq_f32(p, vmulq_f32(r, r)), r), vdupq_n_f32(1.0f));
  // What the magic number adds is shifted out.
  const uint32x4_t power =
      vshlq_n_u32(vaddq_u32(vreinterpretq_u32_f32(shifted), vdupq_n_u32(127)), 23);
  const uint32x4_t small = vcltq_f32(x, vdupq_n_f32(-87.33654f));
  const float32x4_t result = vmulq_f32(e, vreinterpretq_f32_u32(power));
  return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(result), small));
}

/// Whole tiles; maxima pass over NaN, as those of math.h.
struct NeonRows {
  static float scale_and_max(size_t count, float scale, float floor, float* row) {
    if (count != kAttentionTile) return RowLoops::scale_and_max(count, scale, floor, row);
    float32x4_t largest = vdupq_n_f32(floor);
    for (size_t j = 0; j < kAttentionTile; j += 4) {
      const float32x4_t x = vmulq_n_f32(vld1q_f32(row + j), scale);
      vst1q_f32(row + j, x);
      largest = vmaxnmq_f32(largest, x);
    }
    return vmaxnmvq_f32(largest);
  }

  static float exp_and_sum(size_t count, float largest, float* row) {
    if (count != kAttentionTile) return RowLoops::exp_and_sum(count, largest, row);
    float32x4_t sums[2] = {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)};
    for (size_t j = 0; j < kAttentionTile; j += 8) {
#pragma GCC unroll 2
      for (size_t half = 0; half < 2; ++half) {
        float* part = row + j + 4 * half;
        const float32x4_t x = exp_lanes(vsubq_f32(vld1q_f32(part), vdupq_n_f32(largest)));
        vst1q_f32(part, x);
        sums[half] = vaddq_f32(sums[half], x);
      }
    }
    float lanes[kLanes];
    vst1q_f32(lanes, sums[0]);
    vst1q_f32(lanes + 4, sums[1]);
    return combine_sums(lanes);
  }

  static float multiply_and_absmax(size_t count, const float* factors, float* row) {
    if (count != kAttentionTile) return RowLoops::multiply_and_absmax(count, factors, row);
    float32x4_t largest = vdupq_n_f32(0.0f);
    for (size_t j = 0; j < kAttentionTile; j += 4) {
      const float32x4_t x = vmulq_f32(vld1q_f32(row + j), vld1q_f32(factors + j));
      vst1q_f32(row + j, x);
      largest = vmaxnmq_f32(largest, vabsq_f32(x));
    }
    return vmaxnmvq_f32(largest);
  }

  /// Conversion with saturation, which gives 0 for NaN, and nearest to even, as adding the magic number has it.
  static void quantize(size_t count, const float* row, float inverse, int16_t* codes) {
    if (count != kAttentionTile) return RowLoops::quantize(count, row, inverse, codes);
    const int16x8_t least = vdupq_n_s16(-32767);
    for (size_t j = 0; j < kAttentionTile; j += 8) {
      const int32x4_t low = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(row + j), inverse));
      const int32x4_t high = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(row + j + 4), inverse));
      vst1q_s16(codes + j, vmaxq_s16(vqmovn_high_s32(vqmovn_s32(low), high), least));
    }
  }
};

/// Those of block.h.
struct DotprodBlocks : NeonRows, Dotprod {
  static void dots_block(const int16_t* const* x, size_t queries, const int8_t* rows, size_t stride,
                         size_t count, size_t head_width, int32_t* dots_of_all) {
    if (head_width % 16 != 0) {
      for (size_t q = 0; q < queries; ++q) {
        dots(x[q], rows, static_cast<ptrdiff_t>(stride), count, head_width,
             dots_of_all + q * kBlockStride);
      }
      return;
    }
    int8_t fours[kPart * kAttentionTile], codes[kBlockQueries][kPart];
    for (size_t d = 0; d < head_width; d += kPart) {
      const size_t part = head_width - d < kPart ? head_width - d : kPart;
      lay_keys(rows + d, stride, count, part, fours);
      for (size_t q = 0; q < queries; ++q) {
        for (size_t i = 0; i < part; i += 16) vst1q_s8(codes[q] + i, load_codes(x[q] + d + i));
      }
      for (size_t q = 0; q < queries; q += kTileQueries) {
        const int8_t* tile[kTileQueries];
        for (size_t i = 0; i < kTileQueries; ++i) tile[i] = codes[at_most(q + i, queries)];
        for (size_t j = 0; j < count; j += 16) {
          int32_t* to[kTileQueries];
          for (size_t i = 0; i < kTileQueries; ++i) {
            to[i] = dots_of_all + at_most(q + i, queries) * kBlockStride + j;
          }
          dots_tile(tile, fours + j * kFour, part, d == 0, to);
        }
      }
    }
  }

  static void accumulate_block(const int16_t* weights, size_t queries, const int8_t* rows,
                               size_t stride, size_t count, size_t width, int32_t* const* acc) {
    SplitWeights halves[kBlockQueries] = {};
    bool all = width % 16 == 0;
    for (size_t q = 0; all && q < queries; ++q) {
      all = split(weights + q * kBlockStride, count, halves + q);
    }
    if (!all) {
      for (size_t q = 0; q < queries; ++q) {
        accumulate(weights + q * kBlockStride, rows, stride, count, width, acc[q]);
      }
      return;
    }
    int8_t fours[kPart * kAttentionTile];
    for (size_t d = 0; d < width; d += kPart) {
      const size_t part = width - d < kPart ? width - d : kPart;
      lay_values(rows + d, stride, count, part, fours);
      for (size_t q = 0; q < queries; q += kTileQueries) {
        const SplitWeights* tile[kTileQueries];
        for (size_t i = 0; i < kTileQueries; ++i) tile[i] = halves + at_most(q + i, queries);
        for (size_t e = 0; e < part; e += 8) {
          int32_t* to[kTileQueries];
          for (size_t i = 0; i < kTileQueries; ++i) to[i] = acc[at_most(q + i, queries)] + d + e;
          values_tile(tile, fours + e * kFour, count, to);
        }
      }
    }
  }

 private:
  /// Queries that are missing in a tile are the last one again, which gets the same results twice.
  static size_t at_most(size_t q, size_t queries) { return q < queries ? q : queries - 1; }
};

constexpr AttentionKernel<int8_t> kKernel =
    with_blocks(Int8Attention<Dotprod>::kKernel, int8_block<DotprodBlocks>);
#else
constexpr AttentionKernel<int8_t> kKernel = Int8Attention<Dotprod>::kKernel;
#endif

}  // namespace

const AttentionKernel<int8_t> attention_f32_i8_f32_neon_dotprod = kKernel;

}  // namespace oxbow
