#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"

// Some columns of x to some of y, as words. Values: elements.

layout(constant_id = 0) const uint width = 1;
// Words of a row, and the first column, of x and of y.
layout(constant_id = 1) const uint x_stride = 1;
layout(constant_id = 2) const uint x_first = 0;
layout(constant_id = 3) const uint y_stride = 1;
layout(constant_id = 4) const uint y_first = 0;
layout(std430, binding = 1) readonly buffer X { uint x[]; };
layout(std430, binding = 2) writeonly buffer Y { uint y[]; };

void main() {
  const uint i = element_index();
  if (i >= dispatch.values[0]) return;
  const uint row = i / width, column = i % width;
  y[word_at(2u, row * y_stride + y_first + column)] = x[word_at(1u, row * x_stride + x_first + column)];
}
