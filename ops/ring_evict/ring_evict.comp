#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"

// The rows that leave, one after the other in float; one thread for each element.
//
// Values: elements, rows of zeros in front, the ring's head and count.

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint width = 1;
layout(constant_id = 1) const uint capacity = 1;
// Of int8 memories: words of a row and where the scales begin. 0 words: the memory is float.
layout(constant_id = 2) const uint memory_words = 0;
layout(constant_id = 3) const uint memory_scales = 0;
layout(std430, binding = 1) writeonly buffer Y { float y[]; };
layout(std430, binding = 2) readonly buffer X { float x[]; };
layout(std430, binding = 3) readonly buffer Memory { float memory[]; };
layout(std430, binding = 3) readonly buffer MemoryWords { uint words[]; };

float memory_value(uint row, uint column) {
  if (memory_words == 0u) return memory[word_at(3u, row * width + column)];
  const int code = code_of(words[word_at(3u, row * memory_words + column / 4u)], column % 4u);
  precise float value = float(code) * memory[word_at(3u, memory_scales + row)];
  return value;
}

void main() {
  const uint i = group_index() * 64u + gl_LocalInvocationID.x;
  if (i >= dispatch.values[0]) return;
  const uint column = i % width;
  uint row = i / width;
  if (row < dispatch.values[1]) {
    y[word_at(1u, i)] = 0.0;
    return;
  }
  row -= dispatch.values[1];
  if (row < dispatch.values[3]) {
    y[word_at(1u, i)] = memory_value((dispatch.values[2] + row) % capacity, column);
  } else {
    y[word_at(1u, i)] = x[word_at(2u, (row - dispatch.values[3]) * width + column)];
  }
}
