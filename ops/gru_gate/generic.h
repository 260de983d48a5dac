#pragma once

// The loop of all instruction sets: each compiles it with its flags, and as every element takes the
// same steps the bits are the same. In an unnamed namespace, so that no copy gets outside the file
// that includes this.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "ops/gru_gate/gru_gate.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

/// tanh with a relative error below 3e-7, also near 0, where 1 - 2 / (e^2x + 1) cancels: there an odd
/// polynomial, from Cephes' tanhf.
[[gnu::always_inline]] inline float gate_tanh(float x) {
  const float a = abs_f32(x);
  const float large = 1.0f - 2.0f / (exp_f32(2.0f * a) + 1.0f);
  const float z = a * a;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float small = p * z * a + a;
  const float t = a < 0.625f ? small : large;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(t) |
                              (std::bit_cast<uint32_t>(x) & 0x80000000u));
}

[[gnu::always_inline]] inline void gru_gate(const float* gi, const float* gh, const float* x,
                                            size_t width, float* y) {
  for (size_t i = 0; i < width; ++i) {
    const float r = sigmoid_f32(gi[i] + gh[i]);
    const float z = sigmoid_f32(gi[width + i] + gh[width + i]);
    const float n = gate_tanh(gi[2 * width + i] + r * gh[2 * width + i]);
    y[i] = (1.0f - z) * n + z * x[i];
  }
}

}  // namespace
}  // namespace oxbow
