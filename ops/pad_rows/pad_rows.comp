#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"

// Ids with rows of one value behind them. Values: rows of y, and of x.

layout(constant_id = 0) const int value = 0;
layout(std430, binding = 1) readonly buffer X { int x[]; };
layout(std430, binding = 2) writeonly buffer Y { int y[]; };

void main() {
  const uint i = element_index();
  if (i < dispatch.values[0]) y[word_at(2u, i)] = i < dispatch.values[1] ? x[word_at(1u, i)] : value;
}
