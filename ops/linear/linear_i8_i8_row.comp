#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
// Compiled twice: with OXB_INT_DOT for devices that multiply packed codes.
#include "ops/common/vulkan/dot.glsl"
#include "ops/linear/linear.glsl"

// int8 rows, int8 weights: one row by some blocks of 8 channels. Each thread has half of a block's channels and every so many
// groups of columns, whose weights it reads as one wide word. Sums of integers have no order. Values: rows.

const uint blocks_at_once = 4u, phases = thread_count / 2u / blocks_at_once;
shared ivec4 parts[thread_count];

void main() {
  const uint group_blocks = (channels + 8u * blocks_at_once - 1u) / (8u * blocks_at_once);
  const uint row = group_index() / group_blocks, first = group_index() % group_blocks * blocks_at_once;
  if (row >= dispatch.values[0]) return;
  const uint thread = gl_LocalInvocationID.x;
  const uint block = first + thread / (2u * phases);
  ivec4 sums = ivec4(0);
  if (block * 8u < channels) {
    for (uint group = thread / 2u % phases; group < group_count(); group += phases) {
      const uint codes = x_words[word_at(1u, row * x_stride + group)];
      const uvec4 wide = weight_wide_words[four_at(2u, (block * group_count() + group) * 2u + thread % 2u)];
      sums += ivec4(dot_i8(codes, wide.x), dot_i8(codes, wide.y), dot_i8(codes, wide.z), dot_i8(codes, wide.w));
    }
  }
  parts[thread] = sums;
  barrier();
  const uint channel = first * 8u + thread;
  if (thread >= 8u * blocks_at_once || channel >= channels) return;
  int sum = 0;
  for (uint phase = 0u; phase < phases; ++phase) {
    sum += parts[(thread / 8u * phases + phase) * 2u + thread / 4u % 2u][thread % 4u];
  }
  precise float scale = x[word_at(1u, x_scales + row)] * weight[word_at(2u, weight_scales + channel)];
  precise float dot = float(sum) * scale;
  finish(row, channel, dot);
}
