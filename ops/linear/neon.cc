// NEON as every 64-bit ARM core has it, and nearly every 32-bit one. Int8: sums of two products in 16 bits, added in pairs to sums
// in 32. Floats: the lanes of math.h are two registers, products are rounded before they are added.

#include "ops/linear/neon.h"

#include "ops/linear/linear.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

struct Neon {
  // A block needs four registers of sums for each row. Two rows by two blocks leave more registers for
  // the rest than four by one.
  static constexpr size_t kMaxRows = 2;
  template <size_t kRows>
  static constexpr size_t kBlocks = 4 / kRows;

  /// Two groups at a time, and of their products four: each has its time until it is needed. Loads are
  /// as far ahead as registers allow.
  template <size_t kRows, size_t kBlocks>
  [[gnu::always_inline]] static void add(const int8_t* x, size_t x_stride, const int8_t* weight,
                                         size_t weight_stride, size_t groups,
                                         int32x4_t (&sums)[kRows][2 * kBlocks]) {
    constexpr size_t kHalves = 2 * kBlocks;
    // [row][half][channels 0 and 1, or 2 and 3], two sums for each channel.
    int32x4_t acc[kRows][kHalves][2];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (size_t h = 0; h < kHalves; ++h) acc[r][h][0] = acc[r][h][1] = vdupq_n_s32(0);
    }
    const int8_t* rows[kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) rows[r] = x + r * x_stride;
    const auto repeat = [](int32x2_t two, size_t lane) __attribute__((always_inline)) {
      return vreinterpretq_s8_s32(lane == 0 ? vdupq_lane_s32(two, 0) : vdupq_lane_s32(two, 1));
    };
    const auto half_of = [&](size_t h, size_t g) __attribute__((always_inline)) {
      return vld1q_s8(weight + h / 2 * weight_stride + g * kBlockBytes + h % 2 * 16);
    };

    // A stage is the products of as many halves as give four sums or more. Weights of the next one are
    // loaded meanwhile.
    constexpr size_t kSpan = kRows == 1 ? 2 : 1;
    constexpr size_t kStages = kHalves / kSpan;
    constexpr size_t kTogether = 4;
    int32x2_t eight[kRows];  // Columns of two groups, which are then repeated.
    int8x16_t columns[2][kRows], w[2][kSpan][2];
    size_t at = 0;
    const auto load_columns = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        eight[r] = vreinterpret_s32_s8(vld1_s8(rows[r] + at));
        keep_before(eight[r]);
      }
    };
    const auto repeat_columns = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        columns[0][r] = repeat(eight[r], 0);
        columns[1][r] = repeat(eight[r], 1);
      }
    };
    const auto load_stage = [&](size_t stage, size_t g, int8x16_t(&to)[kSpan][2])
        __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (size_t i = 0; i < 2 * kSpan; ++i) {
        to[i / 2][i % 2] = half_of(stage * kSpan + i / 2, g + i % 2);
        keep_before(to[i / 2][i % 2]);
      }
    };
    const auto add_two_groups = [&](bool more) __attribute__((always_inline)) {
      at += 8;
#pragma GCC unroll 4
      for (size_t stage = 0; stage < kStages; ++stage) {
        const auto& now = w[stage % 2];
        const bool last = stage + 1 == kStages;
#pragma GCC unroll 2
        for (size_t i = 0; i < kSpan * 2 * kRows; i += kTogether) {
          const bool last_products = last && i + kTogether == kSpan * 2 * kRows;
          int16x8_t products[kTogether];
#pragma GCC unroll 4
          for (size_t j = 0; j < kTogether; ++j) {
            const size_t r = (i + j) % kRows, part = (i + j) / kRows;
            const int8x16_t first = now[part / 2][0];
            products[j] = part % 2 == 0 ? vmull_s8(vget_low_s8(first), vget_low_s8(columns[0][r]))
                                        : vmull_high_s8(first, columns[0][r]);
          }
          keep_order();
          if (i == 0 && !last) load_stage(stage + 1, 0, w[(stage + 1) % 2]);
          if (i == 0 && last && more) load_stage(0, 2, w[(stage + 1) % 2]);
          if (last_products && more) load_columns();
#pragma GCC unroll 4
          for (size_t j = 0; j < kTogether; ++j) {
            const size_t r = (i + j) % kRows, part = (i + j) / kRows;
            const int8x16_t second = now[part / 2][1];
            products[j] = part % 2 == 0 ? vmlal_s8(products[j], vget_low_s8(second),
                                                   vget_low_s8(columns[1][r]))
                                        : vmlal_high_s8(products[j], second, columns[1][r]);
          }
          keep_order();
          if (last_products && more) repeat_columns();
#pragma GCC unroll 4
          for (size_t j = 0; j < kTogether; ++j) {
            const size_t r = (i + j) % kRows, part = (i + j) / kRows;
            int32x4_t& sum = acc[r][stage * kSpan + part / 2][part % 2];
            sum = vpadalq_s16(sum, products[j]);
          }
          keep_order();
        }
      }
      if (kStages == 1 && more) {
#pragma GCC unroll 2
        for (size_t i = 0; i < kSpan; ++i) w[0][i][0] = w[1][i][0], w[0][i][1] = w[1][i][1];
      }
      weight += 2 * kBlockBytes;
    };
    if (groups >= 2) {
      load_stage(0, 0, w[0]);
      load_columns();
      repeat_columns();
      for (size_t more = groups / 2 - 1; more != 0; --more) add_two_groups(true);
      add_two_groups(false);
    }
    if (groups % 2 != 0) {
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        // The padding of x allows to read the other four.
        const int8x16_t four = repeat(vreinterpret_s32_s8(vld1_s8(rows[r] + at)), 0);
#pragma GCC unroll 8
        for (size_t h = 0; h < kHalves; ++h) {
          const int8x16_t half = half_of(h, 0);
          acc[r][h][0] = vpadalq_s16(acc[r][h][0], vmull_s8(vget_low_s8(half), vget_low_s8(four)));
          acc[r][h][1] = vpadalq_s16(acc[r][h][1], vmull_high_s8(half, four));
        }
      }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (size_t h = 0; h < kHalves; ++h) sums[r][h] = vpaddq_s32(acc[r][h][0], acc[r][h][1]);
    }
  }
};

/// Two products with any weights fit 16 bits unless x has this code too. No quantised row has it, but
/// a file may.
bool has_lowest_code(const LinearSlice<int8_t, int8_t>& s) {
  for (size_t m = 0; m < s.rows; ++m) {
    int8x16_t lowest = vdupq_n_s8(0);
    for (size_t k = 0; k < s.depth; k += 16) {
      lowest = vminq_s8(lowest, vld1q_s8(s.x + m * s.x_stride + k));
    }
    if (vminvq_s8(lowest) == INT8_MIN) return true;
  }
  return false;
}

/// combine_sums of four sums, each in two registers.
float32x4_t combine_four(const float32x4_t (&a)[4][2]) {
  float32x4_t t[4];
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) t[i] = vaddq_f32(a[i][0], a[i][1]);
  const auto halves = [](float32x4_t p, float32x4_t q) __attribute__((always_inline)) {
    return vaddq_f32(low_halves(p, q), high_halves(p, q));
  };
  return vpaddq_f32(halves(t[0], t[1]), halves(t[2], t[3]));
}

/// Eight lanes, of which `count` exist; the others are +0, which leaves a sum that began as +0 as it
/// is.
[[gnu::always_inline]] inline void load_lanes(const float* from, size_t count, float32x4_t* low,
                                              float32x4_t* high) {
  float eight[kLanes] = {};
  for (size_t i = 0; i < count; ++i) eight[i] = from[i];
  *low = vld1q_f32(eight);
  *high = vld1q_f32(eight + 4);
}

/// sums[r][c][half] += x[r] * w[c]. Some products are made before the first is added: it is not ready
/// at once.
template <size_t kRows, size_t kChannels>
[[gnu::always_inline]] inline void add_products(const float32x4_t (&x)[kRows],
                                                const float32x4_t (&w)[kChannels], size_t half,
                                                float32x4_t (&sums)[kRows][kChannels][2]) {
  constexpr size_t kTogether = kRows * kChannels < 4 ? kChannels : 4 / kRows;
#pragma GCC unroll 4
  for (size_t c = 0; c < kChannels; c += kTogether) {
    float32x4_t products[kTogether][kRows];
#pragma GCC unroll 4
    for (size_t i = 0; i < kTogether; ++i) {
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) products[i][r] = vmulq_f32(x[r], w[c + i]);
    }
    keep_order();
#pragma GCC unroll 4
    for (size_t i = 0; i < kTogether; ++i) {
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        sums[r][c + i][half] = vaddq_f32(sums[r][c + i][half], products[i][r]);
      }
    }
  }
}

template <size_t kRows, size_t kChannels>
[[gnu::always_inline]] inline void clear(float32x4_t (&sums)[kRows][kChannels][2]) {
#pragma GCC unroll 4
  for (auto& row : sums) {
#pragma GCC unroll 4
    for (auto& sum : row) sum[0] = sum[1] = vdupq_n_f32(0.0f);
  }
}

/// combine_sums of each, row by row; there is room for a multiple of four.
template <size_t kRows, size_t kChannels>
[[gnu::always_inline]] inline void combine(const float32x4_t (&sums)[kRows][kChannels][2],
                                           float* results) {
  constexpr size_t kCount = kRows * kChannels;
#pragma GCC unroll 4
  for (size_t i = 0; i < kCount; i += 4) {
    float32x4_t four[4][2];
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      const size_t at = i + j < kCount ? i + j : i;
      four[j][0] = sums[at / kChannels][at % kChannels][0];
      four[j][1] = sums[at / kChannels][at % kChannels][1];
    }
    vst1q_f32(results + i, combine_four(four));
  }
}

float bias_of(const float* bias, size_t channel) { return bias == nullptr ? 0.0f : bias[channel]; }

template <size_t kRows, size_t kChannels>
void f32_tile(const LinearSlice<float, float>& s, size_t row, size_t channel) {
  const float* x = s.x + row * s.x_stride;
  const float* w = s.weight + channel * s.depth;
  float32x4_t sums[kRows][kChannels][2];
  clear(sums);
  size_t k = 0;
  for (; k + kLanes <= s.depth; k += kLanes) {
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      float32x4_t xs[kRows], ws[kChannels];
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) xs[r] = vld1q_f32(x + r * s.x_stride + k + 4 * half);
#pragma GCC unroll 4
      for (size_t c = 0; c < kChannels; ++c) ws[c] = vld1q_f32(w + c * s.depth + k + 4 * half);
      add_products(xs, ws, half, sums);
    }
  }
  if (k < s.depth) {
    float32x4_t xs[2][kRows], ws[2][kChannels];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      load_lanes(x + r * s.x_stride + k, s.depth - k, &xs[0][r], &xs[1][r]);
    }
#pragma GCC unroll 4
    for (size_t c = 0; c < kChannels; ++c) {
      load_lanes(w + c * s.depth + k, s.depth - k, &ws[0][c], &ws[1][c]);
    }
    add_products(xs[0], ws[0], 0, sums);
    add_products(xs[1], ws[1], 1, sums);
  }
  float results[(kRows * kChannels + 3) / 4 * 4];
  combine(sums, results);
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
    float* y = s.y + (row + r) * s.y_stride + channel;
    for (size_t c = 0; c < kChannels; ++c)
      y[c] = results[r * kChannels + c] + bias_of(s.bias, channel + c);
  }
}

/// Rows by two or four channels of a block. The lanes of a sum come from two groups of four columns:
/// even groups are one register, odd groups the other.
template <size_t kRows, size_t kChannels>
void f32_i8_tile(const LinearSlice<float, int8_t>& s, size_t row, size_t channel) {
  const size_t groups = (s.depth + kBlockColumns - 1) / kBlockColumns;
  const float* x = s.x + row * s.x_stride;
  const int8_t* w =
      s.weight + channel / kBlockRows * groups * kBlockBytes + channel % kBlockRows * kBlockColumns;
  float32x4_t sums[kRows][kChannels][2];
  clear(sums);
  const auto add_group = [&](size_t g, size_t parity, const float32x4_t(&xs)[kRows])
      __attribute__((always_inline)) {
    float32x4_t ws[kChannels];
#pragma GCC unroll 2
    for (size_t c = 0; c < kChannels; c += 2) {
      const int16x8_t two = vmovl_s8(vld1_s8(w + g * kBlockBytes + c * kBlockColumns));
      ws[c] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(two)));
      ws[c + 1] = vcvtq_f32_s32(vmovl_high_s16(two));
    }
    add_products(xs, ws, parity, sums);
  };
  size_t g = 0;
  for (; (g + 2) * kBlockColumns <= s.depth; g += 2) {
#pragma GCC unroll 2
    for (size_t parity = 0; parity < 2; ++parity) {
      float32x4_t xs[kRows];
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        xs[r] = vld1q_f32(x + r * s.x_stride + (g + parity) * kBlockColumns);
      }
      add_group(g + parity, parity, xs);
    }
  }
  if (g < groups) {
    const size_t k = g * kBlockColumns;
    float32x4_t xs[2][kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      load_lanes(x + r * s.x_stride + k, s.depth - k, &xs[0][r], &xs[1][r]);
    }
    add_group(g, 0, xs[0]);
    if (g + 1 < groups) add_group(g + 1, 1, xs[1]);
  }
  float results[(kRows * kChannels + 3) / 4 * 4];
  combine(sums, results);
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
    float* y = s.y + (row + r) * s.y_stride + channel;
    for (size_t c = 0; c < kChannels && channel + c < s.channels; ++c) {
      y[c] =
          results[r * kChannels + c] * s.weight_scales[channel + c] + bias_of(s.bias, channel + c);
    }
  }
}

}  // namespace

void linear_f32_f32_f32_neon(const LinearSlice<float, float>& s) {
  size_t n = 0;
  for (; n + 4 <= s.channels; n += 4) {
    size_t m = 0;
    for (; m + 2 <= s.rows; m += 2) f32_tile<2, 4>(s, m, n);
    if (m < s.rows) f32_tile<1, 4>(s, m, n);
  }
  for (; n < s.channels; ++n) {
    for (size_t m = 0; m < s.rows; ++m) f32_tile<1, 1>(s, m, n);
  }
}

void linear_f32_i8_f32_neon(const LinearSlice<float, int8_t>& s) {
  for (size_t n = 0; n < s.channels; n += 4) {
    size_t m = 0;
    for (; m + 4 <= s.rows; m += 4) {
      f32_i8_tile<4, 2>(s, m, n);
      if (n + 2 < s.channels) f32_i8_tile<4, 2>(s, m, n + 2);
    }
    for (; m < s.rows; ++m) f32_i8_tile<1, 4>(s, m, n);
  }
}

void linear_i8_i8_f32_neon(const LinearSlice<int8_t, int8_t>& s) {
  if (has_lowest_code(s)) {
    linear_i8_i8_f32_ref(s);
  } else {
    linear_i8<Neon>(s);
  }
}

}  // namespace oxbow
