#pragma once

// The loops of all instruction sets: each compiles them with its flags, and as sums have the lanes
// of math.h the bits are the same. In an unnamed namespace, so that no copy gets outside the file
// that includes this.

#include <cstddef>

#include "ops/layer_norm/layer_norm.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

[[gnu::always_inline]] inline void layer_norm(const float* x, size_t width,
                                              const LayerNormParams& params, float* y) {
  const auto count = static_cast<float>(width);
  const float mean = sum_f32(width, [=](size_t i) { return x[i]; }) / count;
  const float squares = sum_f32(width, [=](size_t i) { return (x[i] - mean) * (x[i] - mean); });
  const float factor = params.deviation
                           ? 1.0f / (__builtin_sqrtf(squares / (count - 1.0f)) + params.epsilon)
                           : 1.0f / __builtin_sqrtf(squares / count + params.epsilon);
  const float* weight = params.weight;
  const float* bias = params.bias;
  if (weight == nullptr) {
    for (size_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * factor;
    return;
  }
  for (size_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * factor * weight[i] + bias[i];
}

}  // namespace
}  // namespace oxbow
