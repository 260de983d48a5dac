#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"
#include "ops/common/vulkan/math.glsl"

// Products of a head's positive and negative parts with themselves, turned, divided by their sum. One thread for each head
// of a row. Values: heads of all rows.

// Of a head.
layout(constant_id = 0) const uint width = 1;
layout(constant_id = 1) const uint order = 1;
layout(constant_id = 2) const float epsilon = 0;
layout(std430, binding = 1) readonly buffer X { float x[]; };
layout(std430, binding = 2) writeonly buffer Y { float y[]; };

float part(uint head, uint j) {
  const float value = j < width ? x[word_at(1u, head * width + j)] : -x[word_at(1u, head * width + j - width)];
  return value < 0.0 && !is_nan(value) ? 0.0 : value;
}

float product_at(uint head, uint at) {
  const uint n = 2u * width, i = at / n + 1u, j = at % n;
  precise float product = part(head, j) * part(head, (j + n - i % n) % n);
  return product;
}

void main() {
  const uint head = element_index();
  if (head >= dispatch.values[0]) return;
  const uint count = 2u * width * order;
  precise float lanes[8];
  for (uint lane = 0u; lane < 8u; ++lane) {
    lanes[lane] = 0.0;
    for (uint at = lane; at < count; at += 8u) lanes[lane] = lanes[lane] + product_at(head, at);
  }
  precise float sum = combine_sums(lanes) + epsilon;
  for (uint at = 0u; at < count; ++at) {
    y[word_at(2u, head * count + at)] = div_f32(product_at(head, at), sum);
  }
}
