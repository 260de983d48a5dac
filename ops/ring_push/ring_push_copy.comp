#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/ring_push/ring_push.glsl"

// Rows and states of one type: words are copied, one group for each row.

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint capacity = 1;
layout(constant_id = 1) const uint pinned = 0;
// Words of a row and of its scales, and where the scales of x and y begin; without scales 0 of them.
layout(constant_id = 2) const uint row_words = 1;
layout(constant_id = 3) const uint scale_words = 0;
layout(constant_id = 4) const uint x_scales = 0;
layout(constant_id = 5) const uint y_scales = 0;
layout(std430, binding = 1) writeonly buffer Y { uint y[]; };
layout(std430, binding = 2) readonly buffer X { uint x[]; };

void main() {
  const uint item = group_index();
  if (item >= dispatch.values[0]) return;
  const uint from = input_row(item), to = ring_slot(from, capacity, pinned);
  for (uint i = gl_LocalInvocationID.x; i < row_words; i += 64u) {
    y[word_at(1u, to * row_words + i)] = x[word_at(2u, from * row_words + i)];
  }
  for (uint i = gl_LocalInvocationID.x; i < scale_words; i += 64u) {
    y[word_at(1u, y_scales + to * scale_words + i)] = x[word_at(2u, x_scales + from * scale_words + i)];
  }
}
