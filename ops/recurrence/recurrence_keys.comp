#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"
#include "ops/common/vulkan/math.glsl"

// What keys sum up to, and what is read is divided by: z <- w z + k, or f k. One thread for each head.
//
// Values: heads, tokens.

layout(constant_id = 0) const uint heads = 1;
layout(constant_id = 1) const uint key_heads = 1;
layout(constant_id = 2) const uint keys = 1;
layout(constant_id = 3) const bool reads = false;
layout(constant_id = 4) const bool writes = false;
layout(constant_id = 5) const bool read_before = false;
layout(constant_id = 6) const bool has_decay = false;
layout(constant_id = 7) const bool decay_per_key = false;
layout(constant_id = 8) const uint decay_stride = 0;
layout(constant_id = 9) const bool has_factor = false;
layout(constant_id = 10) const bool floored = false;
layout(constant_id = 11) const float epsilon = 0;
layout(std430, binding = 1) buffer Z { float z[]; };
layout(std430, binding = 2) readonly buffer Q { float q[]; };
layout(std430, binding = 3) readonly buffer K { float k[]; };
layout(std430, binding = 4) readonly buffer Decay { float decay[]; };
layout(std430, binding = 5) readonly buffer Factor { float factor[]; };
layout(std430, binding = 6) readonly buffer Floor { float least[]; };
layout(std430, binding = 7) writeonly buffer Divisor { float divisor[]; };

// The sum in the order of dot_f32().
void read(uint token, uint head, uint key_row) {
  precise float lanes[8];
  for (uint lane = 0u; lane < 8u; ++lane) {
    lanes[lane] = 0.0;
    for (uint i = lane; i < keys; i += 8u) {
      precise float product = z[word_at(1u, head * keys + i)] * q[word_at(2u, key_row + i)];
      lanes[lane] = lanes[lane] + product;
    }
  }
  const float sum = abs_f32(combine_sums(lanes));
  const float bound = floored ? least[word_at(6u, token * heads + head)] : epsilon;
  precise float bounded = sum < bound && !is_nan(sum) ? bound : sum;
  if (floored) bounded = bounded + epsilon;
  divisor[word_at(7u, token * heads + head)] = bounded;
}

void write(uint token, uint head, uint key_row) {
  for (uint i = 0u; i < keys; ++i) {
    const float w =
        has_decay ? decay[word_at(4u, token * decay_stride + (decay_per_key ? head * keys + i : head))] : 1.0;
    precise float key = k[word_at(3u, key_row + i)];
    if (has_factor) key = factor[word_at(5u, token * heads + head)] * key;
    precise float kept = w * z[word_at(1u, head * keys + i)];
    precise float sum = kept + key;
    z[word_at(1u, head * keys + i)] = sum;
  }
}

void main() {
  const uint head = element_index();
  if (head >= dispatch.values[0]) return;
  const uint key_head = head / (heads / key_heads);
  for (uint token = 0u; token < dispatch.values[1]; ++token) {
    const uint key_row = (token * key_heads + key_head) * keys;
    if (reads && (read_before || !writes)) read(token, head, key_row);
    if (writes) write(token, head, key_row);
    if (reads && writes && !read_before) read(token, head, key_row);
  }
}
