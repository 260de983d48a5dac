#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
// Compiled twice: with OXB_INT_DOT for devices that multiply packed codes.
#include "ops/common/vulkan/dot.glsl"
#include "ops/linear/linear.glsl"

// int8 rows, int8 weights: one row by a block of 8 channels. Each thread has four of them and every 32nd group of
// columns, whose weights it reads as one wide word. Values: rows.

shared ivec4 parts[thread_count];

void main() {
  const uint blocks = (channels + 7u) / 8u;
  const uint row = group_index() / blocks, block = group_index() % blocks;
  if (row >= dispatch.values[0]) return;
  const uint thread = gl_LocalInvocationID.x;
  ivec4 sums = ivec4(0);
  for (uint group = thread / 2u; group < group_count(); group += thread_count / 2u) {
    const uint codes = x_words[word_at(1u, row * x_stride + group)];
    const uvec4 wide = weight_wide_words[four_at(2u, (block * group_count() + group) * 2u + thread % 2u)];
    sums += ivec4(dot_i8(codes, wide.x), dot_i8(codes, wide.y), dot_i8(codes, wide.z), dot_i8(codes, wide.w));
  }
  parts[thread] = sums;
  barrier();
  for (uint half_count = thread_count / 2u; half_count >= 2u; half_count /= 2u) {
    if (thread < half_count) parts[thread] += parts[thread + half_count];
    barrier();
  }
  const uint channel = block * 8u + thread;
  if (thread >= 8u || channel >= channels) return;
  precise float scale = x[word_at(1u, x_scales + row)] * weight[word_at(2u, weight_scales + channel)];
  precise float dot = float(parts[thread / 4u][thread % 4u]) * scale;
  finish(row, channel, dot);
}
