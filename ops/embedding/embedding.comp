#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"

// Rows of a table by id; zeros for ids that it does not have. Values: elements.

layout(constant_id = 0) const uint width = 1;
layout(constant_id = 1) const uint table_rows = 1;
layout(constant_id = 2) const float scale = 1;
// The id of the table's first row.
layout(constant_id = 3) const uint first = 0;
// int8 tables: words of a row, and where the scales begin; 0: a float table.
layout(constant_id = 4) const uint row_words = 0;
layout(constant_id = 5) const uint table_scales = 0;
layout(std430, binding = 1) readonly buffer Ids { uint ids[]; };
layout(std430, binding = 2) readonly buffer Table { float table[]; };
layout(std430, binding = 2) readonly buffer TableWords { uint table_words[]; };
layout(std430, binding = 3) writeonly buffer Y { float y[]; };

void main() {
  const uint i = element_index();
  if (i >= dispatch.values[0]) return;
  const uint column = i % width;
  const uint id = ids[word_at(1u, i / width)];
  const uint index = id - first;
  precise float value = 0.0;
  if (id >= first && index < table_rows) {
    if (row_words == 0u) {
      value = table[word_at(2u, index * width + column)] * scale;
    } else {
      precise float row_scale = table[word_at(2u, table_scales + index)] * scale;
      value = float(code_of(table_words[word_at(2u, index * row_words + column / 4u)], column % 4u)) * row_scale;
    }
  }
  y[word_at(3u, i)] = value;
}
