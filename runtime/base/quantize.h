#pragma once

// How float rows become int8 rows: symmetric, one scale per row and group of elements.
//
//   scale = absmax / 127,  q = clamp(round_to_nearest_even(x * (127 / absmax)), -127, 127)
//
// Data may hold anything; the codes and scales are always defined and the scale is always finite:
//   NaN              is passed over when looking for absmax, and gets code 0
//   +-inf            counts as the largest finite float, and gets code +-127
//   absmax < 2^-100  (0 included) counts as 0: scale 0, codes 0, so that 127 / absmax cannot
//   overflow
// A static scale is given instead of found: q = clamp(round_to_nearest_even(x * (1 / scale)), -127, 127).
// Same rules as in math.h: forced inline, operand order of selects matters.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "runtime/base/checked.h"
#include "runtime/base/math.h"
#include "runtime/base/tensor.h"

namespace oxbow {

inline constexpr int32_t kQuantMax = 127;
inline constexpr float kSmallestAbsmax = 0x1p-100f;

/// Whether a file may hold this as a static scale: neither it nor its inverse is near the ends of float.
constexpr bool is_static_scale(float scale) { return scale >= 0x1p-100f && scale <= 0x1p100f; }

/// Largest magnitude, 0 for no elements.
[[gnu::always_inline]] inline float absmax_f32(const float* x, size_t count) {
  return max_f32(
      count, 0.0f, [=](size_t i) __attribute__((always_inline)) { return abs_f32(x[i]); });
}

struct QuantScale {
  /// value = code * scale.
  float scale = 0.0f;
  /// code = round(value * inverse).
  float inverse = 0.0f;
};

/// `absmax` is not NaN and not negative.
[[gnu::always_inline]] inline QuantScale quant_scale(float absmax) {
  if (absmax < kSmallestAbsmax) return {};
  constexpr float kLargest = std::numeric_limits<float>::max();
  const float finite = absmax > kLargest ? kLargest : absmax;
  return {finite / float{kQuantMax}, float{kQuantMax} / finite};
}

/// Clamps before it converts: no cast of a float that does not fit, whatever x is.
[[gnu::always_inline]] inline int8_t quantize_value(float x, float inverse) {
  float v = x * inverse;
  v = v > float{kQuantMax} ? float{kQuantMax} : v;
  v = v < -float{kQuantMax} ? -float{kQuantMax} : v;
  v = v == v ? v : 0.0f;
  const uint32_t bits = std::bit_cast<uint32_t>(v + kRoundMagic);
  return static_cast<int8_t>(static_cast<int32_t>(bits - std::bit_cast<uint32_t>(kRoundMagic)));
}

/// `count` elements with one common scale.
[[gnu::always_inline]] inline void quantize_group(const float* x, size_t count, int8_t* q,
                                                  float* scale) {
  const QuantScale s = quant_scale(absmax_f32(x, count));
  *scale = s.scale;
  for (size_t i = 0; i < count; ++i) q[i] = quantize_value(x[i], s.inverse);
}

/// One row of an I8 tensor with a static scale.
[[gnu::always_inline]] inline void quantize_row_static(const float* x, size_t width,
                                                       float static_scale, int8_t* q,
                                                       float* scale) {
  const float inverse = 1.0f / static_scale;
  *scale = static_scale;
  for (size_t i = 0; i < width; ++i) q[i] = quantize_value(x[i], inverse);
  for (size_t i = width; i < round_up(width, kI8RowAlignment); ++i) q[i] = 0;
}

/// A whole I8 row as tensor.h lays it out: `groups` divides `width`; the padding is written as
/// zeros.
[[gnu::always_inline]] inline void quantize_row(const float* x, size_t width, size_t groups,
                                                int8_t* q, float* scales) {
  const size_t group_width = width / groups;
  for (size_t g = 0; g < groups; ++g) {
    quantize_group(x + g * group_width, group_width, q + g * group_width, scales + g);
  }
  for (size_t i = width; i < round_up(width, kI8RowAlignment); ++i) q[i] = 0;
}

}  // namespace oxbow
