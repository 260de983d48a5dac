#version 450
#extension GL_GOOGLE_include_directive : require
#define VALUES_ACCESS
#include "ops/common/vulkan/common.glsl"

// Positions of the tokens that are no padding, which has one of its own, by one group of threads.
//
// Values: rows, the first token's position (modulo wrap), positions left, and back to the host: 1 + the row of the first
// token that has none.

const uint threads = 64u;
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint offset = 0;
layout(constant_id = 1) const uint wrap = 0;
layout(constant_id = 2) const uint pad_token = 0;
layout(constant_id = 3) const uint pad_position = 0;
layout(std430, binding = 1) writeonly buffer Ids { uint ids[]; };
layout(std430, binding = 2) readonly buffer Tokens { uint tokens[]; };

shared uint counts[threads];

void main() {
  const uint thread = gl_LocalInvocationID.x, rows = dispatch.values[0], left = dispatch.values[2];
  uint before = 0u;
  for (uint begin = 0u; begin < rows; begin += threads) {
    const uint row = begin + thread;
    const bool is_text = row < rows && tokens[word_at(2u, row)] != pad_token;
    counts[thread] = is_text ? 1u : 0u;
    barrier();
    uint own = before, all = before;
    for (uint i = 0u; i < threads; ++i) {
      own += i < thread ? counts[i] : 0u;
      all += counts[i];
    }
    if (is_text && own == left) dispatch.values[3] = row + 1u;
    const uint position = dispatch.values[1] + own;
    if (row < rows) ids[word_at(1u, row)] = is_text ? offset + (wrap == 0u ? position : position % wrap) : pad_position;
    before = all;
    barrier();
  }
}
