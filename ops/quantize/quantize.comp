#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/row_output.glsl"

// Float rows to int8 rows. Values: rows.

layout(std430, binding = 2) readonly buffer X { float x[]; };

float value_at(uint row, uint column) { return x[word_at(2u, row * width + column)]; }

void main() {
  const uint row = group_index();
  if (row < dispatch.values[0]) write_row(row);
}
