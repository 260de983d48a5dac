#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"
#include "ops/common/vulkan/math.glsl"

// A softmax over the taps of each filter. Values: filters.

layout(constant_id = 0) const uint taps = 1;
layout(std430, binding = 1) readonly buffer X { float x[]; };
layout(std430, binding = 2) buffer Y { float y[]; };

void main() {
  const uint i = element_index();
  if (i >= dispatch.values[0]) return;
  const uint first = i * taps;
  float most = uintBitsToFloat(0xff800000u);
  for (uint a = 0u; a < taps; ++a) most = x[word_at(1u, first + a)] > most ? x[word_at(1u, first + a)] : most;
  // In the lanes of sum_f32() of runtime/base/math.h.
  precise float sums[8] = float[8](0, 0, 0, 0, 0, 0, 0, 0);
  for (uint a = 0u; a < taps; ++a) {
    precise float difference = x[word_at(1u, first + a)] - most;
    const float power = exp_f32(difference);
    y[word_at(2u, first + a)] = power;
    sums[a % 8u] = sums[a % 8u] + power;
  }
  const float sum = combine_sums(sums);
  for (uint a = 0u; a < taps; ++a) y[word_at(2u, first + a)] = div_f32(y[word_at(2u, first + a)], sum);
}
