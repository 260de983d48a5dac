#pragma once

// A row around what an ISA does for itself, given as a struct of static functions:
//
//   absmax   the largest magnitude of `count` elements, NaN passed over
//   codes    q[i] = quantize_value(x[i], inverse) for i < count
//
// In an unnamed namespace: no copy compiled with an ISA's flags gets outside its file.

#include <cstddef>
#include <cstdint>

#include "runtime/base/quantize.h"

namespace oxbow {
namespace {

template <typename Primitives>
void quantize_with(const float* x, size_t width, size_t groups, float static_scale, int8_t* q,
                   float* scales) {
  const size_t group_width = width / groups;
  for (size_t g = 0; g < groups; ++g, x += group_width) {
    const QuantScale scale = static_scale != 0.0f ? QuantScale{static_scale, 1.0f / static_scale}
                                                  : quant_scale(Primitives::absmax(x, group_width));
    scales[g] = scale.scale;
    Primitives::codes(x, group_width, scale.inverse, q + g * group_width);
  }
  for (size_t i = width; i < round_up(width, kI8RowAlignment); ++i) q[i] = 0;
}

}  // namespace
}  // namespace oxbow
