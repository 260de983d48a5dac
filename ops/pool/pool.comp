#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"
#include "ops/common/vulkan/math.glsl"

// The mean or the largest of vectors side by side in a row, or of neighbours. Values: elements.

layout(constant_id = 0) const uint width = 1;
layout(constant_id = 1) const uint group = 1;
layout(constant_id = 2) const bool mean = true;
layout(constant_id = 3) const bool neighbours = false;
layout(std430, binding = 1) readonly buffer X { float x[]; };
layout(std430, binding = 2) writeonly buffer Y { float y[]; };

void main() {
  const uint i = element_index();
  if (i >= dispatch.values[0]) return;
  const uint at = neighbours ? i * group : i / width * width * group + i % width;
  const uint step = neighbours ? 1u : width;
  precise float pooled = x[word_at(1u, at)];
  for (uint g = 1u; g < group; ++g) {
    const float next = x[word_at(1u, at + g * step)];
    if (mean) {
      pooled = pooled + next;
    } else {
      pooled = next > pooled || is_nan(next) ? next : pooled;
    }
  }
  y[word_at(2u, i)] = mean ? div_f32(pooled, float(group)) : pooled;
}
