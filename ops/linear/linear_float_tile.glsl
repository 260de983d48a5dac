// 16 rows by 16 channels: two by two for each thread. Values: rows.

const uint tile = 16u;
const uint tile_groups = 8u;
// One more, so that rows begin at different banks.
const uint tile_stride = tile_groups + 1u;
shared vec4 x_tile[tile * tile_stride];
shared vec4 weight_tile[tile * tile_stride];

void load_tiles(uint first_row, uint first_channel, uint first_group) {
  for (uint i = gl_LocalInvocationID.x; i < tile * tile_groups; i += thread_count) {
    const uint line = i / tile_groups;
    const uint group = first_group + i % tile_groups;
    const uint row = first_row + line, channel = first_channel + line;
    const uint at = line * tile_stride + i % tile_groups;
    const bool inside = group < group_count();
    x_tile[at] = inside && row < dispatch.values[0] ? x_at(row, group) : vec4(0);
    weight_tile[at] = inside && channel < channels ? weight_at(channel, group) : vec4(0);
  }
}

void main() {
  const uint channel_tiles = (channels + tile - 1u) / tile;
  const uint first_row = group_index() / channel_tiles * tile;
  if (first_row >= dispatch.values[0]) return;
  const uint first_channel = group_index() % channel_tiles * tile;
  const uint column = gl_LocalInvocationID.x % 8u, line = gl_LocalInvocationID.x / 8u;
  // [row of two][channel of two][even or odd group].
  precise vec4 sums[8] = vec4[8](vec4(0), vec4(0), vec4(0), vec4(0), vec4(0), vec4(0), vec4(0), vec4(0));
  for (uint begin = 0u; begin < group_count(); begin += tile_groups) {
    load_tiles(first_row, first_channel, begin);
    barrier();
    for (uint pair = 0u; pair < tile_groups; pair += 2u) {
      for (uint odd = 0u; odd < 2u; ++odd) {
        for (uint i = 0u; i < 2u; ++i) {
          const vec4 rows = x_tile[(line + 8u * i) * tile_stride + pair + odd];
          for (uint j = 0u; j < 2u; ++j) {
            precise vec4 products = rows * weight_tile[(column + 8u * j) * tile_stride + pair + odd];
            sums[i * 4u + j * 2u + odd] = sums[i * 4u + j * 2u + odd] + products;
          }
        }
      }
    }
    barrier();
  }
  for (uint i = 0u; i < 2u; ++i) {
    for (uint j = 0u; j < 2u; ++j) {
      const uint row = first_row + line + 8u * i, channel = first_channel + column + 8u * j;
      if (row >= dispatch.values[0] || channel >= channels) continue;
      finish(row, channel, scaled(channel, fold(sums[i * 4u + j * 2u], sums[i * 4u + j * 2u + 1u])));
    }
  }
}
