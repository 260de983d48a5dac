#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"

// Row t is row (t + ahead - behind) / group of x, or zeros where x has none. Words, so that NaN keeps its bits. Values:
// elements, rows of x.

layout(constant_id = 0) const uint width = 1;
layout(constant_id = 1) const uint group = 1;
// One of them is 0.
layout(constant_id = 2) const uint ahead = 0;
layout(constant_id = 3) const uint behind = 0;
layout(std430, binding = 1) readonly buffer X { uint x[]; };
layout(std430, binding = 2) writeonly buffer Y { uint y[]; };

void main() {
  const uint i = element_index();
  if (i >= dispatch.values[0]) return;
  const uint t = i / width;
  const uint row = (t + ahead - behind) / group;
  const bool there = t >= behind && row < dispatch.values[1];
  uint word = 0u;
  if (there) word = x[word_at(1u, row * width + i % width)];
  y[word_at(2u, i)] = word;
}
