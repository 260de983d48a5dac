#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/linear/linear.glsl"

// Float rows, float weights. Slot: rows.

float dot_of(uint row, uint channel) {
  precise float sums[8] = float[8](0, 0, 0, 0, 0, 0, 0, 0);
  const uint x_row = row * x_stride, weight_row = channel * depth;
  for (uint k = 0; k < depth; k += 8u) {
    for (uint lane = 0; lane < 8u; ++lane) {
      if (k + lane < depth) {
        precise float product = x[x_row + k + lane] * weight[weight_row + k + lane];
        sums[lane] = sums[lane] + product;
      }
    }
  }
  return combine_sums(sums);
}
