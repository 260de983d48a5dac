#pragma once

// The loops over the head width that NEON kernels share. In an unnamed namespace, so that no copy
// compiled with an ISA's flags gets outside the file that includes this. Ends of rows are read again
// with the sixteen bytes before them, or copied, never beyond.

#if defined(__ARM_NEON)

#include <cstddef>
#include <cstdint>

#include "ops/attention/generic.h"
#include "ops/common/neon.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

/// Adds to, or sets, the products of 16 * kParts columns of x with all rows. Add::add(sum, x, row) adds
/// sixteen products to the four lanes of a sum, in any order.
template <typename Add, size_t kParts>
[[gnu::always_inline]] inline void dots_i8(const int8x16_t (&x)[kParts], const int8_t* rows,
                                           ptrdiff_t stride, size_t count, bool set,
                                           int32_t* dots) {
  const auto four_dots = [&](const int8_t* const(&four)[4]) __attribute__((always_inline)) {
    int32x4_t acc[4];
    int8x16_t values[2][4];
#pragma GCC unroll 4
    for (size_t r = 0; r < 4; ++r) {
      acc[r] = vdupq_n_s32(0);
      values[0][r] = vld1q_s8(four[r]);
    }
    // The next sixteen are loaded before these are multiplied, which cores that execute in order need.
#pragma GCC unroll 4
    for (size_t i = 0; i < kParts; ++i) {
#pragma GCC unroll 4
      for (size_t r = 0; r < 4; ++r) {
        if (i + 1 < kParts) {
          values[(i + 1) % 2][r] = vld1q_s8(four[r] + 16 * (i + 1));
          asm volatile("" ::"w"(values[(i + 1) % 2][r]));
        }
        acc[r] = Add::add(acc[r], x[i], values[i % 2][r]);
      }
    }
    return vpaddq_s32(vpaddq_s32(acc[0], acc[1]), vpaddq_s32(acc[2], acc[3]));
  };
  size_t j = 0;
  for (; j + 4 <= count; j += 4, rows += 4 * stride) {
    const int32x4_t sums = four_dots({rows, rows + stride, rows + 2 * stride, rows + 3 * stride});
    vst1q_s32(dots + j, set ? sums : vaddq_s32(vld1q_s32(dots + j), sums));
  }
  if (j == count) return;
  // Up to three: the first of them again in place of those that are missing.
  int32_t sums[4];
  const int8_t* second = j + 1 < count ? rows + stride : rows;
  vst1q_s32(sums, four_dots({rows, second, j + 2 < count ? second + stride : rows, rows}));
  for (size_t i = 0; j < count; ++i, ++j) dots[j] = set ? sums[i] : dots[j] + sums[i];
}

/// Sixteen codes of a query. They are int8 in int16.
[[gnu::always_inline]] inline int8x16_t load_codes(const int16_t* x) {
  return vuzp1q_s8(vreinterpretq_s8_s16(vld1q_s16(x)), vreinterpretq_s8_s16(vld1q_s16(x + 8)));
}

template <typename Add>
void query_dots(const int16_t* x, const int8_t* rows, ptrdiff_t stride, size_t count,
                size_t head_width, int32_t* dots) {
  if (head_width < 16) {
    for (size_t j = 0; j < count; ++j, rows += stride) {
      int32_t sum = 0;
      for (size_t d = 0; d < head_width; ++d) sum += int32_t{x[d]} * int32_t{rows[d]};
      dots[j] = sum;
    }
    return;
  }
  size_t d = 0;
  for (; d + 64 <= head_width; d += 64) {
    const int8x16_t codes[4] = {load_codes(x + d), load_codes(x + d + 16), load_codes(x + d + 32),
                                load_codes(x + d + 48)};
    dots_i8<Add>(codes, rows + d, stride, count, d == 0, dots);
  }
  for (; d + 16 <= head_width; d += 16) {
    const int8x16_t codes[1] = {load_codes(x + d)};
    dots_i8<Add>(codes, rows + d, stride, count, d == 0, dots);
  }
  if (d < head_width) {
    // Sixteen columns again; those that were counted are zero in x.
    int16_t tail[16] = {};
    for (size_t i = d; i < head_width; ++i) tail[16 - head_width + i] = x[i];
    const int8x16_t codes[1] = {load_codes(tail)};
    dots_i8<Add>(codes, rows + head_width - 16, stride, count, false, dots);
  }
}

/// Sums of 16 * kParts elements of the values over all keys.
template <size_t kParts>
[[gnu::always_inline]] inline void sum_values(const int16_t* weights, const int8_t* rows,
                                              size_t stride, size_t count,
                                              int32x4_t (&sums)[4 * kParts]) {
#pragma GCC unroll 16
  for (int32x4_t& sum : sums) sum = vdupq_n_s32(0);
  for (size_t j = 0; j < count; ++j, rows += stride) {
    const int16x8_t weight = vdupq_n_s16(weights[j]);
#pragma GCC unroll 4
    for (size_t i = 0; i < kParts; ++i) {
      const int8x16_t values = vld1q_s8(rows + 16 * i);
      const int16x8_t low = vmovl_s8(vget_low_s8(values)), high = vmovl_high_s8(values);
      int32x4_t* sum = sums + 4 * i;
      sum[0] = vmlal_s16(sum[0], vget_low_s16(low), vget_low_s16(weight));
      sum[1] = vmlal_high_s16(sum[1], low, weight);
      sum[2] = vmlal_s16(sum[2], vget_low_s16(high), vget_low_s16(weight));
      sum[3] = vmlal_high_s16(sum[3], high, weight);
    }
  }
}

template <size_t kParts>
void accumulate_i8(const int16_t* weights, const int8_t* rows, size_t stride, size_t count,
                   int32_t* acc) {
  int32x4_t sums[4 * kParts];
  sum_values<kParts>(weights, rows, stride, count, sums);
#pragma GCC unroll 16
  for (size_t i = 0; i < 4 * kParts; ++i) {
    vst1q_s32(acc + 4 * i, vaddq_s32(vld1q_s32(acc + 4 * i), sums[i]));
  }
}

/// Elements from d on, which are fewer than sixteen: the last sixteen again.
inline void accumulate_end(const int16_t* weights, const int8_t* rows, size_t stride, size_t count,
                           size_t head_width, size_t d, int32_t* acc) {
  int32x4_t sums[4];
  sum_values<1>(weights, rows + head_width - 16, stride, count, sums);
  int32_t lanes[16];
  for (size_t i = 0; i < 4; ++i) vst1q_s32(lanes + 4 * i, sums[i]);
  for (; d < head_width; ++d) acc[d] += lanes[16 - head_width + d];
}

/// 4 * kParts elements, the keys one after the other.
template <size_t kParts>
void accumulate_f32(const float* weights, const float* rows, size_t stride, size_t count,
                    float* acc) {
  float32x4_t sums[kParts];
#pragma GCC unroll 16
  for (size_t i = 0; i < kParts; ++i) sums[i] = vld1q_f32(acc + 4 * i);
  for (size_t j = 0; j < count; ++j, rows += stride) {
    const float weight = weights[j];
#pragma GCC unroll 16
    for (size_t i = 0; i < kParts; ++i) {
      sums[i] = vaddq_f32(sums[i], vmulq_n_f32(vld1q_f32(rows + 4 * i), weight));
    }
  }
#pragma GCC unroll 16
  for (size_t i = 0; i < kParts; ++i) vst1q_f32(acc + 4 * i, sums[i]);
}

/// Products of x with kKeys rows, kKeys at most four, in the lanes of math.h: two registers each.
template <size_t kKeys>
void dots_f32(const float* x, const float* rows, ptrdiff_t stride, size_t head_width, float* dots) {
  float32x4_t acc[4][2];
#pragma GCC unroll 4
  for (auto& sum : acc) sum[0] = sum[1] = vdupq_n_f32(0.0f);
  size_t d = 0;
  for (; d + kLanes <= head_width; d += kLanes) {
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      const float32x4_t part = vld1q_f32(x + d + 4 * half);
#pragma GCC unroll 4
      for (size_t j = 0; j < kKeys; ++j) {
        const float* row = rows + static_cast<ptrdiff_t>(j) * stride + d + 4 * half;
        acc[j][half] = vaddq_f32(acc[j][half], vmulq_f32(part, vld1q_f32(row)));
      }
    }
  }
  float sums[4][kLanes];
#pragma GCC unroll 4
  for (size_t j = 0; j < kKeys; ++j) {
    vst1q_f32(sums[j], acc[j][0]);
    vst1q_f32(sums[j] + 4, acc[j][1]);
    const float* row = rows + static_cast<ptrdiff_t>(j) * stride;
    for (size_t lane = 0; d + lane < head_width; ++lane) {
      sums[j][lane] += x[d + lane] * row[d + lane];
    }
    acc[j][0] = vaddq_f32(vld1q_f32(sums[j]), vld1q_f32(sums[j] + 4));
  }
  // combine_sums, once the two halves are added.
  const auto pairs = [&](size_t a, size_t b) __attribute__((always_inline)) {
    return vaddq_f32(low_halves(acc[a][0], acc[b][0]), high_halves(acc[a][0], acc[b][0]));
  };
  if constexpr (kKeys == 4) {
    vst1q_f32(dots, vpaddq_f32(pairs(0, 1), pairs(2, 3)));
  } else {
    static_assert(kKeys == 1);
    const float32x4_t pair = pairs(0, 0);
    *dots = vgetq_lane_f32(vpaddq_f32(pair, pair), 0);
  }
}

/// The primitives of generic.h, with the int8 products of Add.
template <typename Add>
struct Neon {
  static void dots(const float* x, const float* rows, ptrdiff_t stride, size_t count,
                   size_t head_width, float* dots) {
    size_t j = 0;
    for (; j + 4 <= count; j += 4, rows += 4 * stride) {
      dots_f32<4>(x, rows, stride, head_width, dots + j);
    }
    for (; j < count; ++j, rows += stride) dots_f32<1>(x, rows, stride, head_width, dots + j);
  }

  static void dots(const int16_t* x, const int8_t* rows, ptrdiff_t stride, size_t count,
                   size_t head_width, int32_t* dots) {
    query_dots<Add>(x, rows, stride, count, head_width, dots);
  }

  static void accumulate(const float* weights, const float* rows, size_t stride, size_t count,
                         size_t head_width, float* acc) {
    size_t d = 0;
    for (; d + 64 <= head_width; d += 64) {
      accumulate_f32<16>(weights, rows + d, stride, count, acc + d);
    }
    for (; d + 16 <= head_width; d += 16) {
      accumulate_f32<4>(weights, rows + d, stride, count, acc + d);
    }
    for (; d + 4 <= head_width; d += 4) {
      accumulate_f32<1>(weights, rows + d, stride, count, acc + d);
    }
    for (; d < head_width; ++d) {
      for (size_t j = 0; j < count; ++j) acc[d] += weights[j] * rows[j * stride + d];
    }
  }

  static void accumulate(const int16_t* weights, const int8_t* rows, size_t stride, size_t count,
                         size_t head_width, int32_t* acc) {
    if (head_width < 16) return accumulate_narrow(weights, rows, stride, count, head_width, acc);
    size_t d = 0;
    for (; d + 64 <= head_width; d += 64) {
      accumulate_i8<4>(weights, rows + d, stride, count, acc + d);
    }
    for (; d + 16 <= head_width; d += 16) {
      accumulate_i8<1>(weights, rows + d, stride, count, acc + d);
    }
    if (d < head_width) accumulate_end(weights, rows, stride, count, head_width, d, acc);
  }
};

}  // namespace
}  // namespace oxbow

#endif  // __ARM_NEON
