#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"

// ids = offset + position, modulo wrap if that is not 0. Values: elements, the first token's position (modulo wrap).

layout(constant_id = 0) const uint offset = 0;
layout(constant_id = 1) const uint wrap = 0;
layout(std430, binding = 1) writeonly buffer Ids { uint ids[]; };

void main() {
  const uint i = element_index();
  if (i >= dispatch.values[0]) return;
  const uint position = dispatch.values[1] + i;
  ids[word_at(1u, i)] = offset + (wrap == 0u ? position : position % wrap);
}
