#pragma once

// The loop of all instruction sets: each compiles it with its flags, and as every element takes the
// same steps the bits are the same. In an unnamed namespace, so that no copy gets outside the file
// that includes this.

#include <cstddef>

#include "ops/gru_gate/gru_gate.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

[[gnu::always_inline]] inline void gru_gate(const float* gi, const float* gh, const float* x,
                                            size_t width, float* y) {
  for (size_t i = 0; i < width; ++i) {
    const float r = sigmoid_f32(gi[i] + gh[i]);
    const float z = sigmoid_f32(gi[width + i] + gh[width + i]);
    const float n = tanh_f32(gi[2 * width + i] + r * gh[2 * width + i]);
    y[i] = (1.0f - z) * n + z * x[i];
  }
}

}  // namespace
}  // namespace oxbow
