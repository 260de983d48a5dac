#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
// Compiled twice: with OXB_INT_DOT for devices that multiply packed codes.
#include "ops/common/vulkan/dot.glsl"
#include "ops/linear/linear.glsl"

// int8 rows, weights of four bits: four rows by 64 channels, a channel for each thread. Groups of 32 columns are exact
// integers and are added in order, so a sum stays with its thread. Values: rows.

layout(constant_id = 9) const bool has_mins = false;
// Scales of a row of x: 1, or one for each block.
layout(constant_id = 10) const uint x_groups = 1;

const uint row_tile = 4u;
// Of a block of 8 channels by 32 columns: words of scales, and those of mins, then the codes.
const uint half_words = 4u;
const uint code_words = 32u;

uint block_count() { return (depth + 31u) / 32u; }
uint header_words() { return has_mins ? 2u * half_words : half_words; }
uint block_at(uint channel, uint block) {
  return ((channel / 8u) * block_count() + block) * (header_words() + code_words);
}

// In integers, as to_f32() of runtime/base/weight_blocks.h: subnormal halves count.
float half_at(uint word, uint channel) {
  const uint bits = bitfieldExtract(weight_words[word_at(2u, word + channel % 8u / 2u)], int(channel % 2u * 16u), 16);
  const uint sign = (bits & 0x8000u) << 16u, exponent = (bits >> 10u) & 0x1fu, fraction = bits & 0x3ffu;
  if (exponent == 0u) return uintBitsToFloat(floatBitsToUint(float(fraction) * 5.9604644775390625e-8) | sign);
  return uintBitsToFloat(sign | (exponent == 0x1fu ? 0xffu : exponent + 112u) << 23u | fraction << 13u);
}

// Behind the padding of a row there is another row.
uint x_word(uint row, uint word) { return word < x_stride ? x_words[word_at(1u, row * x_stride + word)] : 0u; }

void main() {
  const uint channel_groups = (channels + thread_count - 1u) / thread_count;
  const uint first_row = group_index() / channel_groups * row_tile;
  const uint channel = group_index() % channel_groups * thread_count + gl_LocalInvocationID.x;
  if (first_row >= dispatch.values[0] || channel >= channels) return;
  const uint rows = min(row_tile, dispatch.values[0] - first_row);
  precise float sums[row_tile] = float[row_tile](0.0, 0.0, 0.0, 0.0);
  for (uint block = 0u; block < block_count(); ++block) {
    const uint at = block_at(channel, block);
    const float scale = half_at(at, channel);
    const float least = has_mins ? half_at(at + half_words, channel) : 0.0;
    uint codes[4];
    for (uint j = 0u; j < 4u; ++j) {
      codes[j] = weight_words[word_at(2u, at + header_words() + 8u * j + channel % 8u)];
    }
    for (uint r = 0u; r < rows; ++r) {
      int dot = 0, x_sum = 0;
      for (uint j = 0u; j < 4u; ++j) {
        const uint low = x_word(first_row + r, 8u * block + j), high = x_word(first_row + r, 8u * block + 4u + j);
        dot += dot_i8(low, codes[j] & 0x0f0f0f0fu) + dot_i8(high, (codes[j] >> 4u) & 0x0f0f0f0fu);
        x_sum += dot_i8(low, 0x01010101u) + dot_i8(high, 0x01010101u);
      }
      precise float part = float(has_mins ? dot : dot - 8 * x_sum) * scale;
      if (has_mins) {
        precise float of_min = float(x_sum) * least;
        part = part + of_min;
      }
      if (x_groups != 1u) part = part * x[word_at(1u, x_scales + (first_row + r) * x_groups + block)];
      sums[r] = sums[r] + part;
    }
  }
  for (uint r = 0u; r < rows; ++r) {
    precise float dot = sums[r];
    if (x_groups == 1u) dot = dot * x[word_at(1u, x_scales + first_row + r)];
    finish(first_row + r, channel, dot);
  }
}
