#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"
#include "ops/common/vulkan/math.glsl"

// The gates of a GRU cell, as gru_gate.h tells. Values: elements.

layout(constant_id = 0) const uint width = 1;
layout(std430, binding = 1) readonly buffer InputGates { float gi[]; };
layout(std430, binding = 2) readonly buffer HiddenGates { float gh[]; };
layout(std430, binding = 3) readonly buffer X { float x[]; };
layout(std430, binding = 4) writeonly buffer Y { float y[]; };

void main() {
  const uint i = element_index();
  if (i >= dispatch.values[0]) return;
  const uint at = i / width * 3u * width + i % width;
  precise float reset = gi[word_at(1u, at)] + gh[word_at(2u, at)];
  precise float update = gi[word_at(1u, at + width)] + gh[word_at(2u, at + width)];
  const float r = sigmoid_f32(reset), z = sigmoid_f32(update);
  precise float added = gi[word_at(1u, at + 2u * width)] + r * gh[word_at(2u, at + 2u * width)];
  precise float value = (1.0 - z) * tanh_f32(added) + z * x[word_at(3u, i)];
  y[word_at(4u, i)] = value;
}
