#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/row_output.glsl"

// y = a * b. Values: rows.

// An element of b serves so many neighbours of a, and its row all of a's if it has one.
layout(constant_id = 5) const uint repeat = 1;
layout(constant_id = 6) const bool one_row = false;

layout(std430, binding = 2) readonly buffer A { float a[]; };
layout(std430, binding = 3) readonly buffer B { float b[]; };

float value_at(uint row, uint column) {
  precise float product =
      a[word_at(2u, row * width + column)] * b[word_at(3u, ((one_row ? 0u : row * width) + column) / repeat)];
  return product;
}

void main() {
  const uint row = group_index();
  if (row < dispatch.values[0]) write_row(row);
}
