#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"
#include "ops/common/vulkan/math.glsl"

// Sums or means of rows that follow each other, of one x and then of another, as pool_rows.h tells. Values: elements; of each
// x rows, rows of a group, and groups.

layout(constant_id = 0) const uint width = 1;
// Rows of zeros in front of x.
layout(constant_id = 1) const uint front = 0;
layout(constant_id = 2) const bool mean = false;
layout(constant_id = 3) const bool has_factors = false;
layout(std430, binding = 1) readonly buffer X { float x[]; };
layout(std430, binding = 2) readonly buffer SecondX { float second_x[]; };
layout(std430, binding = 3) readonly buffer Factors { float factors[]; };
layout(std430, binding = 4) writeonly buffer Y { float y[]; };

void main() {
  const uint i = element_index();
  if (i >= dispatch.values[0]) return;
  const uint column = i % width;
  uint j = i / width;
  const bool second = j >= dispatch.values[3];
  if (second) j -= dispatch.values[3];
  const uint values = second ? 4u : 1u;
  const uint rows = dispatch.values[values], group = dispatch.values[values + 1u];
  const uint first = j * group;
  const uint end = j + 1u == dispatch.values[values + 2u] ? rows : first + group;
  precise float sum = 0.0;
  for (uint r = max(first, front); r < end; ++r) {
    const uint at = (r - front) * width + column;
    float value = 0.0;
    if (second) {
      value = second_x[word_at(2u, at)];
    } else {
      value = x[word_at(1u, at)];
    }
    if (has_factors) {
      precise float product = value * factors[word_at(3u, (r - first) * width + column)];
      value = product;
    }
    sum = sum + value;
  }
  y[word_at(4u, i)] = mean ? div_f32(sum, float(end - first)) : sum;
}
