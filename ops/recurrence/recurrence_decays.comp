#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"
#include "ops/common/vulkan/math.glsl"

// n <- w n + 1, and the decays and factors of a state that is kept divided by sqrt(n). One thread for each head.
//
// Values: heads, tokens.

layout(constant_id = 0) const uint heads = 1;
layout(constant_id = 1) const bool has_decay = false;
layout(constant_id = 2) const uint decay_stride = 0;
layout(constant_id = 3) const bool has_factor = false;
layout(std430, binding = 1) buffer N { float n[]; };
layout(std430, binding = 2) readonly buffer Decay { float decay[]; };
layout(std430, binding = 3) readonly buffer Factor { float factor[]; };
layout(std430, binding = 4) writeonly buffer Decays { float decays[]; };
layout(std430, binding = 5) writeonly buffer Factors { float factors[]; };

void main() {
  const uint head = element_index();
  if (head >= dispatch.values[0]) return;
  for (uint token = 0u; token < dispatch.values[1]; ++token) {
    const uint at = token * heads + head;
    const float w = has_decay ? decay[word_at(2u, token * decay_stride + head)] : 1.0;
    const float before = n[word_at(1u, head)];
    precise float kept = before * w;
    precise float now = kept + 1.0;
    n[word_at(1u, head)] = now;
    const float root = sqrt_f32(now);
    precise float scaled = sqrt_f32(before) * w;
    decays[word_at(4u, at)] = div_f32(scaled, root);
    factors[word_at(5u, at)] = div_f32(has_factor ? factor[word_at(3u, at)] : 1.0, root);
  }
}
