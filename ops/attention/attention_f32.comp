#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
#include "ops/attention/attention.glsl"

// Float keys and values.

layout(std430, binding = 3) readonly buffer K0 { float k0[]; };
layout(std430, binding = 4) readonly buffer V0 { float v0[]; };
layout(std430, binding = 5) readonly buffer K1 { float k1[]; };
layout(std430, binding = 6) readonly buffer V1 { float v1[]; };
layout(std430, binding = 7) readonly buffer K2 { float k2[]; };
layout(std430, binding = 8) readonly buffer V2 { float v2[]; };
layout(std430, binding = 9) readonly buffer Table { float table[]; };

shared float queries[3u * items_at_once * width_room];

// From row to row.
uint key_stride() { return heads / heads_of_group * head_width; }

uint query_at(uint kind, uint item) { return (kind * items_at_once + item) * head_width; }

void load_queries() {
  for (uint kind = 0u; kind < 3u; ++kind) {
    if (!is_needed(kind)) continue;
    for (uint i = gl_LocalInvocationID.x; i < item_count * head_width; i += threads) {
      queries[query_at(kind, 0u) + i] = query_value(kind, i / head_width, i % head_width);
    }
  }
  barrier();
}

float key_element(uint source, uint at) {
  return is_source(0u, source)   ? k0[word_at(3u, at)]
         : is_source(1u, source) ? k1[word_at(5u, at)]
                                 : k2[word_at(7u, at)];
}
float value_element(uint source, uint at) {
  return is_source(0u, source)   ? v0[word_at(4u, at)]
         : is_source(1u, source) ? v1[word_at(6u, at)]
                                 : v2[word_at(8u, at)];
}

// As dot_f32() of math.h.
float table_product(uint item, uint row) {
  precise float s[8] = float[8](0, 0, 0, 0, 0, 0, 0, 0);
  const uint at = query_at(1u, item), from = row * q_width() + head_of(item) * head_width;
  for (uint first = 0u; first < head_width; first += 8u) {
    [[unroll]] for (uint lane = 0u; lane < 8u; ++lane) {
      const uint d = first + lane;
      if (d >= head_width) break;
      precise float product = queries[at + d] * table[word_at(9u, from + d)];
      s[lane] = s[lane] + product;
    }
  }
  return combine_sums(s);
}

void find_products(Key key, uint keys, out float products[items_at_once]) {
  const uint thread = gl_LocalInvocationID.x;
  const uint kind = pinned_query && key.pinned ? 2u : 0u;
  precise float s[items_at_once * 8u];
  [[unroll]] for (uint i = 0u; i < items_at_once * 8u; ++i) s[i] = 0.0;
  if (thread < keys) {
    const uint row = key.row * key_stride() + kv_head * head_width;
    for (uint first = 0u; first < head_width; first += 8u) {
      [[unroll]] for (uint lane = 0u; lane < 8u; ++lane) {
        const uint d = first + lane;
        if (d >= head_width) break;
        const float of_key = key_element(key.source, row + d);
        EACH_ITEM(item) {
          precise float product = queries[query_at(kind, item) + d] * of_key;
          s[item * 8u + lane] = s[item * 8u + lane] + product;
        }
      }
    }
  }
  EACH_ITEM(item) {
    const uint i = item * 8u;
    precise float sum =
        combine_sums(float[8](s[i], s[i + 1u], s[i + 2u], s[i + 3u], s[i + 4u], s[i + 5u], s[i + 6u], s[i + 7u]));
    products[item] = sum;
  }
}

void add_values(uint keys) {
  for (uint c = 0u; c < columns; ++c) {
    const uint d = c * threads + gl_LocalInvocationID.x;
    if (d >= head_width) break;
    precise float acc[items_at_once];
    ALL_ITEMS(item) acc[item] = 0.0;
    for (uint j = 0u; j < keys; ++j) {
      const float value = value_element(key_sources[j], key_rows[j] * key_stride() + kv_head * head_width + d);
      EACH_ITEM(item) {
        if (j < item_keys[item]) {
          precise float product = weights[item * tile_keys + j] * value;
          acc[item] = acc[item] + product;
        }
      }
    }
    EACH_ITEM(item) {
      if (item_keys[item] == 0u) continue;
      precise float sum = columns_out[item * columns + c] * rescales[item] + acc[item];
      columns_out[item * columns + c] = sum;
    }
  }
}
