#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"

// Words of y from those of x, further on: one thread for each column of words.
//
// Values: rows wanted, the first row of x.

layout(local_size_x = 64) in;
// Words of a row and of its scales, and where the scales of x and y begin; without scales 0 of them.
layout(constant_id = 0) const uint row_words = 1;
layout(constant_id = 1) const uint scale_words = 0;
layout(constant_id = 2) const uint x_scales = 0;
layout(constant_id = 3) const uint y_scales = 0;
layout(std430, binding = 1) readonly buffer X { uint x[]; };
layout(std430, binding = 2) writeonly buffer Y { uint y[]; };

void main() {
  const uint column = group_index() * 64u + gl_LocalInvocationID.x;
  if (column >= row_words + scale_words) return;
  const bool is_scale = column >= row_words;
  const uint stride = is_scale ? scale_words : row_words;
  const uint from = is_scale ? x_scales + column - row_words : column;
  const uint to = is_scale ? y_scales + column - row_words : column;
  for (uint row = 0; row < dispatch.values[0]; ++row) {
    y[word_at(2u, to + row * stride)] = x[word_at(1u, from + (dispatch.values[1] + row) * stride)];
  }
}
