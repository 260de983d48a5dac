#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/linear/linear.glsl"

// Float rows, int8 weights. Slot: rows.

float dot_of(uint row, uint channel) {
  // Even groups of four columns take lanes 0 to 3, odd ones lanes 4 to 7.
  precise float sums[8] = float[8](0, 0, 0, 0, 0, 0, 0, 0);
  const uint x_row = row * x_stride;
  for (uint k = 0; k < depth; k += 4u) {
    const uint word = weight_word(channel, k / 4u);
    for (uint j = 0; j < 4u; ++j) {
      if (k + j < depth) {
        precise float product = float(code_of(word, j)) * x[x_row + k + j];
        sums[(k & 4u) + j] = sums[(k & 4u) + j] + product;
      }
    }
  }
  precise float scaled = combine_sums(sums) * weight[weight_scales + channel];
  return scaled;
}
