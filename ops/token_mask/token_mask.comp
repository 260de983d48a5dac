#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"

// 0 where a token is the pad token, otherwise 1. Values: elements.

layout(constant_id = 0) const uint pad_token = 0;
layout(std430, binding = 1) readonly buffer Tokens { uint tokens[]; };
layout(std430, binding = 2) writeonly buffer Mask { uint mask[]; };

void main() {
  const uint i = element_index();
  if (i < dispatch.values[0]) mask[word_at(2u, i)] = tokens[word_at(1u, i)] == pad_token ? 0u : 1u;
}
