#pragma once

// The loops of all instruction sets: each compiles them with its flags, and as sums have the lanes
// of math.h the bits are the same. In an unnamed namespace, so that no copy gets outside the file
// that includes this.

#include <cstddef>

#include "ops/rms_norm/rms_norm.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

[[gnu::always_inline]] inline void rms_norm(const float* x, size_t width,
                                            const RmsNormParams& params, float* y) {
  const float mean =
      sum_f32(width, [=](size_t i) { return x[i] * x[i]; }) / static_cast<float>(width);
  const float factor = 1.0f / __builtin_sqrtf(mean + params.epsilon);
  const float* weight = params.weight;
  if (weight == nullptr) {
    for (size_t i = 0; i < width; ++i) y[i] = x[i] * factor;
    return;
  }
  for (size_t i = 0; i < width; ++i) y[i] = x[i] * factor * weight[i];
}

}  // namespace
}  // namespace oxbow
