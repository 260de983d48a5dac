#version 450
#extension GL_GOOGLE_include_directive : require
#define VALUES_ACCESS
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"

// Rows that are seen move up to those before them: one thread for each word, scales included.
//
// Values: words of all rows, and back to the host: rows that are seen.

// Words of a row and of its scales, and where the scales of x and y begin; without scales 0 of them.
layout(constant_id = 0) const uint row_words = 1;
layout(constant_id = 1) const uint scale_words = 0;
layout(constant_id = 2) const uint x_scales = 0;
layout(constant_id = 3) const uint y_scales = 0;
layout(std430, binding = 1) readonly buffer X { uint x[]; };
layout(std430, binding = 2) readonly buffer Mask { int mask[]; };
// Of ops/common/seen_rows.comp.
layout(std430, binding = 3) readonly buffer Seen { uint seen[]; };
layout(std430, binding = 4) writeonly buffer Y { uint y[]; };

void main() {
  const uint i = element_index();
  if (i >= dispatch.values[0]) return;
  const uint row = i / (row_words + scale_words), column = i % (row_words + scale_words);
  const uint up_to = seen[word_at(3u, 2u * row + 1u)];
  if (i + 1u == dispatch.values[0]) dispatch.values[1] = up_to;
  if (mask[word_at(2u, row)] == 0) return;
  if (column < row_words) {
    y[word_at(4u, (up_to - 1u) * row_words + column)] = x[word_at(1u, row * row_words + column)];
  } else {
    const uint scale = column - row_words;
    y[word_at(4u, y_scales + (up_to - 1u) * scale_words + scale)] = x[word_at(1u, x_scales + row * scale_words + scale)];
  }
}
