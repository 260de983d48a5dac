#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"

// y = a + b. Values: the number of elements.

// An element of b serves so many neighbours of a, and its row all of a's if it has one.
layout(constant_id = 0) const uint width = 1;
layout(constant_id = 1) const uint repeat = 1;
layout(constant_id = 2) const bool one_row = false;

layout(std430, binding = 1) readonly buffer A { float a[]; };
layout(std430, binding = 2) readonly buffer B { float b[]; };
layout(std430, binding = 3) writeonly buffer Y { float y[]; };

void main() {
  const uint i = element_index();
  if (i < dispatch.values[0]) y[word_at(3u, i)] = a[word_at(1u, i)] + b[word_at(2u, (one_row ? i % width : i) / repeat)];
}
