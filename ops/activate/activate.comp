#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"
#include "ops/common/vulkan/math.glsl"
#include "ops/activate/activate.glsl"

// y = f(x). Values: elements.

layout(constant_id = 0) const uint activation = 0;
layout(constant_id = 1) const float limit = 0;
layout(std430, binding = 1) readonly buffer X { float x[]; };
layout(std430, binding = 2) writeonly buffer Y { float y[]; };

void main() {
  const uint i = element_index();
  if (i < dispatch.values[0]) y[word_at(2u, i)] = activate(activation, limit, x[word_at(1u, i)]);
}
