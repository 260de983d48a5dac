#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/row_output.glsl"

// y = a * b. Values: rows.

layout(std430, binding = 2) readonly buffer A { float a[]; };
layout(std430, binding = 3) readonly buffer B { float b[]; };

float value_at(uint row, uint column) {
  const uint at = row * width + column;
  precise float product = a[at] * b[at];
  return product;
}

void main() {
  const uint row = group_index();
  if (row < dispatch.values[0]) write_row(row);
}
