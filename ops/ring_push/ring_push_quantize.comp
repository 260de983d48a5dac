#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/row_output.glsl"
#include "ops/ring_push/ring_push.glsl"

// Float rows to int8 states, one group for each row.

layout(constant_id = 5) const uint capacity = 1;
layout(constant_id = 6) const uint pinned = 0;
layout(std430, binding = 2) readonly buffer X { float x[]; };

uint from;

float value_at(uint row, uint column) { return x[word_at(2u, from * width + column)]; }

void main() {
  const uint item = group_index();
  if (item >= dispatch.values[0]) return;
  from = input_row(item);
  write_row(ring_slot(from, capacity, pinned));
}
