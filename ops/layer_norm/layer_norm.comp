#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/row_output.glsl"

// (x - mean) / sqrt(variance + epsilon) * weight + bias, of each part of a row, which is a row here. Values: rows.

layout(constant_id = 5) const float epsilon = 0;
layout(constant_id = 6) const uint groups = 1;
layout(constant_id = 7) const bool weighted = true;
layout(constant_id = 8) const bool own_weights = true;
layout(std430, binding = 2) readonly buffer X { float x[]; };
layout(std430, binding = 3) readonly buffer Weight { float weight[]; };
layout(std430, binding = 4) readonly buffer Bias { float bias[]; };
#include "ops/common/vulkan/row_sum.glsl"

// Of this group's row.
float mean, factor;

float value_at(uint row, uint column) {
  const uint at = (own_weights ? row % groups * width : 0u) + column;
  precise float value = (x[word_at(2u, row * width + column)] - mean) * factor;
  if (weighted) value = value * weight[word_at(3u, at)] + bias[word_at(4u, at)];
  return value;
}

void main() {
  const uint row = group_index();
  if (row >= dispatch.values[0]) return;
  mean = div_f32(row_sum(row, false, 0.0), float(width));
  precise float variance = div_f32(row_sum(row, true, mean), float(width)) + epsilon;
  factor = div_f32(1.0, sqrt_f32(variance));
  write_row(row);
}
