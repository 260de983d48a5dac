// NEON: weights of 16 bits become floats in registers. The eight lanes of a sum are two registers.

#include "ops/common/neon.h"
#include "ops/linear/linear.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

/// The eight lanes of math.h.
struct Lanes {
  float32x4_t low, high;
};

[[gnu::always_inline]] inline Lanes load(const F16* w) {
  const float32x4x2_t eight = load_f16(w);
  return {eight.val[0], eight.val[1]};
}

[[gnu::always_inline]] inline Lanes load(const BF16* w) {
  const uint16x8_t eight = vld1q_u16(&w->bits);
  return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(eight), 16)),
          vreinterpretq_f32_u32(vshll_high_n_u16(eight, 16))};
}

[[gnu::always_inline]] inline Lanes load(const float* x) {
  return {vld1q_f32(x), vld1q_f32(x + 4)};
}

/// The first `count` of eight, then zeros.
template <typename T>
Lanes load_some(const T* from, size_t count) {
  T eight[kLanes] = {};
  __builtin_memcpy(eight, from, count * sizeof(T));
  return load(eight);
}

template <typename W, size_t kRows, size_t kChannels>
void tile(const LinearSlice<float, W>& s, size_t row, size_t channel) {
  const float* x = s.x + row * s.x_stride;
  const W* w = s.weight + channel * s.depth;
  Lanes acc[kRows][kChannels];
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows * kChannels; ++i) {
    acc[i / kChannels][i % kChannels] = {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)};
  }
  const auto add = [&](const Lanes(&xs)[kRows], size_t c, Lanes ws) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      acc[r][c].low = vaddq_f32(acc[r][c].low, vmulq_f32(xs[r].low, ws.low));
      acc[r][c].high = vaddq_f32(acc[r][c].high, vmulq_f32(xs[r].high, ws.high));
    }
  };
  size_t i = 0;
  for (; i + kLanes <= s.depth; i += kLanes) {
    Lanes xs[kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) xs[r] = load(x + r * s.x_stride + i);
#pragma GCC unroll 4
    for (size_t c = 0; c < kChannels; ++c) add(xs, c, load(w + c * s.depth + i));
  }
  if (i < s.depth) {
    Lanes xs[kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) xs[r] = load_some(x + r * s.x_stride + i, s.depth - i);
#pragma GCC unroll 4
    for (size_t c = 0; c < kChannels; ++c) {
      add(xs, c, load_some(w + c * s.depth + i, s.depth - i));
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
    float* y = s.y + (row + r) * s.y_stride + channel;
#pragma GCC unroll 4
    for (size_t c = 0; c < kChannels; ++c) {
      float lanes[kLanes];
      vst1q_f32(lanes, acc[r][c].low);
      vst1q_f32(lanes + 4, acc[r][c].high);
      y[c] = combine_sums(lanes) + (s.bias == nullptr ? 0.0f : s.bias[channel + c]);
    }
  }
}

template <typename W>
void linear_half(const LinearSlice<float, W>& s) {
  size_t n = 0;
  for (; n + 4 <= s.channels; n += 4) {
    size_t m = 0;
    for (; m + 2 <= s.rows; m += 2) tile<W, 2, 4>(s, m, n);
    if (m < s.rows) tile<W, 1, 4>(s, m, n);
  }
  for (; n < s.channels; ++n) {
    for (size_t m = 0; m < s.rows; ++m) tile<W, 1, 1>(s, m, n);
  }
}

}  // namespace

void linear_f32_f16_f32_neon(const LinearSlice<float, F16>& s) { linear_half(s); }
void linear_f32_bf16_f32_neon(const LinearSlice<float, BF16>& s) { linear_half(s); }

}  // namespace oxbow
