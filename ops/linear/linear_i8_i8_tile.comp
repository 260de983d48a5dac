#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
// Compiled twice: with OXB_INT_DOT for devices that multiply packed codes.
#include "ops/common/vulkan/dot.glsl"
#include "ops/linear/linear.glsl"

// int8 rows, int8 weights: 32 rows by 32 channels, four by four for each thread. Values: rows.

const uint tile = 32u;
const uint tile_groups = 16u;
// One more, so that groups begin at different banks.
const uint tile_stride = tile + 1u;
shared uint x_tile[tile_groups * tile_stride];
shared uint weight_tile[tile_groups * tile_stride];

// Neighbouring threads read neighbouring words: of a row of x, of a block of weights.
void load_tiles(uint first_row, uint first_channel, uint first_group) {
  for (uint i = gl_LocalInvocationID.x; i < tile * tile_groups; i += thread_count) {
    const uint x_group = i % tile_groups, line = i / tile_groups;
    const bool has_x = first_group + x_group < group_count() && first_row + line < dispatch.values[0];
    x_tile[x_group * tile_stride + line] =
        has_x ? x_words[word_at(1u, (first_row + line) * x_stride + first_group + x_group)] : 0u;
    const uint weight_group = i / 8u % tile_groups, column = i / (8u * tile_groups) * 8u + i % 8u;
    const bool has_weight = first_group + weight_group < group_count() && first_channel + column < channels;
    weight_tile[weight_group * tile_stride + column] =
        has_weight ? weight_words[word_at(2u, weight_word_index(first_channel + column, first_group + weight_group))] : 0u;
  }
}

void main() {
  const uint channel_tiles = (channels + tile - 1u) / tile;
  const uint first_row = group_index() / channel_tiles * tile;
  if (first_row >= dispatch.values[0]) return;
  const uint first_channel = group_index() % channel_tiles * tile;
  const uint column = gl_LocalInvocationID.x % 8u, line = gl_LocalInvocationID.x / 8u;
  // A row's four channels each.
  ivec4 sums[4] = ivec4[4](ivec4(0), ivec4(0), ivec4(0), ivec4(0));
  for (uint begin = 0u; begin < group_count(); begin += tile_groups) {
    load_tiles(first_row, first_channel, begin);
    barrier();
    for (uint group = 0u; group < tile_groups; ++group) {
      const uint from = group * tile_stride;
      const uvec4 codes = uvec4(weight_tile[from + column], weight_tile[from + column + 8u],
                                weight_tile[from + column + 16u], weight_tile[from + column + 24u]);
      for (uint i = 0u; i < 4u; ++i) {
        const uint x_codes = x_tile[from + line + 8u * i];
        sums[i] += ivec4(dot_i8(x_codes, codes.x), dot_i8(x_codes, codes.y), dot_i8(x_codes, codes.z),
                         dot_i8(x_codes, codes.w));
      }
    }
    barrier();
  }
  for (uint i = 0u; i < 4u; ++i) {
    for (uint j = 0u; j < 4u; ++j) {
      const uint row = first_row + line + 8u * i, channel = first_channel + column + 8u * j;
      if (row >= dispatch.values[0] || channel >= channels) continue;
      precise float scale = x[word_at(1u, x_scales + row)] * weight[word_at(2u, weight_scales + channel)];
      precise float dot = float(sums[i][j]) * scale;
      finish(row, channel, dot);
    }
  }
}
