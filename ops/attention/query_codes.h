#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/quantize.h"

namespace oxbow {

/// Quantises a query to int8, but keeps the codes in int16; returns the scale. `Primitives` keeps the code
/// inside the file of its kernel.
template <typename Primitives>
float quantize_query(const float* x, size_t count, int16_t* codes) {
  const QuantScale scale = quant_scale(absmax_f32(x, count));
  for (size_t d = 0; d < count; ++d) codes[d] = quantize_value(x[d], scale.inverse);
  return scale.scale;
}

}  // namespace oxbow
