#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"

// y = a + (b - a) * mix. Values: elements.

layout(constant_id = 0) const uint width = 1;
// Of one row for all.
layout(constant_id = 1) const bool one_mix = false;
layout(std430, binding = 1) readonly buffer A { float a[]; };
layout(std430, binding = 2) readonly buffer B { float b[]; };
layout(std430, binding = 3) readonly buffer Mix { float mix_of[]; };
layout(std430, binding = 4) writeonly buffer Y { float y[]; };

void main() {
  const uint i = element_index();
  if (i >= dispatch.values[0]) return;
  precise float difference = b[word_at(2u, i)] - a[word_at(1u, i)];
  precise float part = difference * mix_of[word_at(3u, one_mix ? i % width : i)];
  precise float sum = a[word_at(1u, i)] + part;
  y[word_at(4u, i)] = sum;
}
