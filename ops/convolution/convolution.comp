#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"

// A filter over time for each channel: sums from the bias and the first tap to the last, without those of
// missing rows.
//
// Values: elements, rows, rows that the memory holds, its oldest row's place.

layout(constant_id = 0) const uint width = 1;
layout(constant_id = 1) const uint heads = 1;
layout(constant_id = 2) const uint taps = 1;
// Rows before the run that a filter reaches; as many are in a full memory.
layout(constant_id = 3) const uint left = 0;
// Filters differ from row to row.
layout(constant_id = 4) const bool dynamic = false;
// The memory: words of a row, scales of a row (0: float), where they begin.
layout(constant_id = 5) const uint memory_stride = 1;
layout(constant_id = 6) const uint memory_groups = 0;
layout(constant_id = 7) const uint memory_scales = 0;
layout(constant_id = 8) const bool has_bias = false;
layout(std430, binding = 1) readonly buffer X { float x[]; };
layout(std430, binding = 2) readonly buffer Filters { float filters[]; };
layout(std430, binding = 3) readonly buffer Memory { float memory[]; };
layout(std430, binding = 3) readonly buffer MemoryWords { uint memory_words[]; };
layout(std430, binding = 4) writeonly buffer Y { float y[]; };
layout(std430, binding = 5) readonly buffer Bias { float bias[]; };

float remembered(uint row, uint channel) {
  const uint place = (dispatch.values[3] + row) % max(left, 1u);
  if (memory_groups == 0u) return memory[word_at(3u, place * memory_stride + channel)];
  const int code = code_of(memory_words[word_at(3u, place * memory_stride + channel / 4u)], channel % 4u);
  const uint group = channel / (width / memory_groups);
  precise float value = float(code) * memory[word_at(3u, memory_scales + place * memory_groups + group)];
  return value;
}

void main() {
  const uint i = element_index();
  if (i >= dispatch.values[0]) return;
  const uint rows = dispatch.values[1], held = dispatch.values[2];
  const uint row = i / width, channel = i % width;
  const uint filter_at = ((dynamic ? row * heads : 0u) + channel / (width / heads)) * taps;
  // In the line [ left rows before the run | the run ] the filter covers [row, row + taps).
  const uint begin = max(row, left - held);
  const uint end = min(row + taps, left + rows);
  precise float sum = has_bias ? bias[word_at(5u, channel)] : 0.0;
  for (uint at = begin; at < end; ++at) {
    const float value =
        at < left ? remembered(at - (left - held), channel) : x[word_at(1u, (at - left) * width + channel)];
    precise float product = filters[word_at(2u, filter_at + at - row)] * value;
    sum = sum + product;
  }
  y[word_at(4u, i)] = sum;
}
