#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/row_output.glsl"

// Turns pairs of elements of each head by their angles. Values: rows.

layout(constant_id = 5) const uint head_width = 1;
// Elements of a head that turn.
layout(constant_id = 6) const uint turned = 2;
layout(constant_id = 7) const bool adjacent = false;
layout(std430, binding = 2) readonly buffer X { float x[]; };
layout(std430, binding = 3) readonly buffer Angles { float angles[]; };

float value_at(uint row, uint column) {
  const uint at = row * width + column;
  const uint i = column % head_width;
  if (i >= turned) return x[word_at(2u, at)];
  const uint pairs = turned / 2u;
  const uint pair = adjacent ? i / 2u : i % pairs;
  const bool is_first = adjacent ? i % 2u == 0u : i < pairs;
  const uint apart = adjacent ? 1u : pairs;
  const float sine = angles[word_at(3u, row * turned + pair)], cosine = angles[word_at(3u, row * turned + pairs + pair)];
  if (is_first) {
    precise float a = x[word_at(2u, at)] * cosine - x[word_at(2u, at + apart)] * sine;
    return a;
  }
  precise float b = x[word_at(2u, at)] * cosine + x[word_at(2u, at - apart)] * sine;
  return b;
}

void main() {
  const uint row = group_index();
  if (row < dispatch.values[0]) write_row(row);
}
