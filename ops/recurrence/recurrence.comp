#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"
#include "ops/common/vulkan/math.glsl"

// One thread for each column of a head's state, token after token, as ops/recurrence/ref.cc.
//
// Values: columns of all heads, tokens.

layout(constant_id = 0) const uint heads = 1;
layout(constant_id = 1) const uint key_heads = 1;
layout(constant_id = 2) const uint keys = 1;
layout(constant_id = 3) const uint values = 1;
layout(constant_id = 4) const bool reads = false;
layout(constant_id = 5) const bool writes = false;
layout(constant_id = 6) const bool read_before = false;
layout(constant_id = 7) const bool delta = false;
// Elements of a token's row of decays; 0: all tokens have the same.
layout(constant_id = 8) const bool has_decay = false;
layout(constant_id = 9) const bool decay_per_key = false;
layout(constant_id = 10) const uint decay_stride = 0;
layout(constant_id = 11) const bool has_factor = false;
layout(constant_id = 12) const bool rank_one = false;
layout(constant_id = 13) const bool has_divisor = false;
layout(std430, binding = 1) buffer State { float state[]; };
layout(std430, binding = 2) readonly buffer Q { float q[]; };
layout(std430, binding = 3) readonly buffer K { float k[]; };
layout(std430, binding = 4) readonly buffer V { float v[]; };
layout(std430, binding = 5) readonly buffer Decay { float decay[]; };
layout(std430, binding = 6) readonly buffer Factor { float factor[]; };
layout(std430, binding = 7) readonly buffer A { float a[]; };
layout(std430, binding = 8) readonly buffer B { float b[]; };
layout(std430, binding = 9) readonly buffer Divisor { float divisor[]; };
layout(std430, binding = 10) writeonly buffer Y { float y[]; };

// Of this thread: its head, its column of all heads side by side, where its column of the state begins.
uint head, column, first;

float decay_at(uint token, uint key) {
  if (!has_decay) return 1.0;
  return decay[word_at(5u, token * decay_stride + (decay_per_key ? head * keys + key : head))];
}

void read(uint token, uint key_row) {
  precise float sum = 0.0;
  for (uint i = 0u; i < keys; ++i) {
    precise float product = state[word_at(1u, first + i * values)] * q[word_at(2u, key_row + i)];
    sum = sum + product;
  }
  y[word_at(10u, token * heads * values + column)] = has_divisor ? div_f32(sum, divisor[word_at(9u, token * heads + head)]) : sum;
}

void write(uint token, uint key_row) {
  const uint own_row = (token * heads + head) * keys;
  precise float seen = 0.0;
  if (rank_one) {
    for (uint i = 0u; i < keys; ++i) {
      precise float product = state[word_at(1u, first + i * values)] * a[word_at(7u, own_row + i)];
      seen = seen + product;
    }
  }
  precise float value = v[word_at(4u, token * heads * values + column)];
  if (delta) {
    precise float known = 0.0;
    for (uint i = 0u; i < keys; ++i) {
      precise float kept = decay_at(token, i) * state[word_at(1u, first + i * values)];
      precise float product = kept * k[word_at(3u, key_row + i)];
      known = known + product;
    }
    value = value - known;
  }
  if (has_factor) value = value * factor[word_at(6u, token * heads + head)];
  for (uint i = 0u; i < keys; ++i) {
    precise float s = decay_at(token, i) * state[word_at(1u, first + i * values)];
    if (rank_one) {
      precise float turned = b[word_at(8u, own_row + i)] * seen;
      s = s + turned;
    }
    precise float more = k[word_at(3u, key_row + i)] * value;
    s = s + more;
    state[word_at(1u, first + i * values)] = s;
  }
}

void main() {
  column = element_index();
  if (column >= dispatch.values[0]) return;
  head = column / values;
  first = head * keys * values + column % values;
  const uint key_head = head / (heads / key_heads);
  for (uint token = 0u; token < dispatch.values[1]; ++token) {
    const uint key_row = (token * key_heads + key_head) * keys;
    if (reads && (read_before || !writes)) read(token, key_row);
    if (writes) write(token, key_row);
    if (reads && writes && !read_before) read(token, key_row);
  }
}
