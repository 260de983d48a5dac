#version 450
#extension GL_GOOGLE_include_directive : require
#define VALUES_ACCESS
#include "ops/common/vulkan/common.glsl"
#include "ops/common/vulkan/elements.glsl"

// x with the rows that a mask marks replaced by those of `rows`, in order. Words, so that NaN keeps its bits. Nothing is
// written when the mask marks another number of rows than there are.
//
// Values: elements, back to the host: rows that are marked, and rows that are to be put there.

layout(constant_id = 0) const uint width = 1;
layout(std430, binding = 1) readonly buffer X { uint x[]; };
layout(std430, binding = 2) readonly buffer Rows { uint rows[]; };
layout(std430, binding = 3) readonly buffer Mask { int mask[]; };
// Of ops/common/seen_rows.comp.
layout(std430, binding = 4) readonly buffer Seen { uint seen[]; };
layout(std430, binding = 5) writeonly buffer Y { uint y[]; };

void main() {
  const uint i = element_index(), count = dispatch.values[0];
  if (i >= count) return;
  const uint marked = seen[word_at(4u, 2u * (count / width - 1u) + 1u)];
  if (i == 0u) dispatch.values[1] = marked;
  if (marked != dispatch.values[2]) return;
  const uint row = i / width, column = i % width;
  y[word_at(5u, i)] = mask[word_at(3u, row)] != 0
                          ? rows[word_at(2u, (seen[word_at(4u, 2u * row + 1u)] - 1u) * width + column)]
                          : x[word_at(1u, i)];
}
