#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
// Compiled twice: with OXB_INT_DOT for devices that multiply packed codes.
#include "ops/common/vulkan/dot.glsl"
#include "ops/linear/linear.glsl"

// int8 rows, int8 weights. Slot: rows.

float dot_of(uint row, uint channel) {
  int sum = 0;
  const uint x_row = row * x_stride;
  const uint groups = (depth + 3u) / 4u;
  for (uint g = 0; g < groups; ++g) sum += dot_i8(x_words[x_row + g], weight_word(channel, g));
  precise float scale = x[x_scales + row] * weight[weight_scales + channel];
  precise float scaled = float(sum) * scale;
  return scaled;
}
