#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"

// What a mask leaves of its rows, by one group of threads: word 2 n is the n-th row that is seen, word 2 i + 1 how many of
// the rows up to i are seen. Values: rows.

const uint threads = 64u;
layout(local_size_x = 64) in;
layout(std430, binding = 1) writeonly buffer Seen { uint seen[]; };
layout(std430, binding = 2) readonly buffer Mask { int mask[]; };

shared uint is_seen[threads];

void main() {
  const uint thread = gl_LocalInvocationID.x, rows = dispatch.values[0];
  uint before = 0u;
  for (uint begin = 0u; begin < rows; begin += threads) {
    const uint row = begin + thread;
    is_seen[thread] = row < rows && mask[word_at(2u, row)] != 0 ? 1u : 0u;
    barrier();
    uint up_to = before, all = before;
    for (uint i = 0u; i < threads; ++i) {
      all += is_seen[i];
      up_to += i <= thread ? is_seen[i] : 0u;
    }
    if (row < rows) {
      if (is_seen[thread] != 0u) seen[word_at(1u, 2u * (up_to - 1u))] = row;
      seen[word_at(1u, 2u * row + 1u)] = up_to;
    }
    before = all;
    barrier();
  }
}
