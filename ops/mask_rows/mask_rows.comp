#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"

// x where its row's mask is not 0, otherwise 0. Words, so that NaN keeps its bits. Values: elements.

layout(constant_id = 0) const uint width = 1;
layout(std430, binding = 1) readonly buffer X { uint x[]; };
layout(std430, binding = 2) readonly buffer Mask { uint mask[]; };
layout(std430, binding = 3) writeonly buffer Y { uint y[]; };

void main() {
  const uint i = element_index();
  if (i < dispatch.values[0]) y[word_at(3u, i)] = mask[word_at(2u, i / width)] != 0u ? x[word_at(1u, i)] : 0u;
}
