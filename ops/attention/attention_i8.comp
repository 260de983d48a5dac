#version 450
#extension GL_GOOGLE_include_directive : require
#include "ops/common/vulkan/common.glsl"
// Compiled twice: with OXB_INT_DOT for devices that multiply packed codes.
#include "ops/common/vulkan/dot.glsl"
#include "ops/attention/attention.glsl"

// int8 keys, values and table: products are integers, as are weighted sums inside a tile.

layout(std430, binding = 3) readonly buffer K0 { uint k0[]; };
layout(std430, binding = 4) readonly buffer V0 { uint v0[]; };
layout(std430, binding = 5) readonly buffer K1 { uint k1[]; };
layout(std430, binding = 6) readonly buffer V1 { uint v1[]; };
layout(std430, binding = 7) readonly buffer K2 { uint k2[]; };
layout(std430, binding = 8) readonly buffer V2 { uint v2[]; };
layout(std430, binding = 9) readonly buffer Table { uint table[]; };

#define head_words ((head_width + 3u) / 4u)
#define kv_heads (heads / heads_of_group)
// From row to row, in words.
uint key_stride() { return (kv_heads * head_width + 15u) / 16u * 4u; }
uint table_stride() { return (q_width() + 15u) / 16u * 4u; }
// What the threads have of sums over a tile's values.
const uint parts = 4u;
shared int part_sums[items_at_once * parts * threads];
shared uint queries[3u * items_at_once * width_room / 4u];
// Largest magnitudes as bits, which have the order of the numbers.
shared uint query_absmax[3u * items_at_once];
float query_scales[3u * items_at_once];

uint query_at(uint kind, uint item) { return (kind * items_at_once + item) * head_words; }

// As quantize_value() of quantize.h and quantize_weight() of generic.h.
int round_code(float x, float inverse, float limit) {
  precise float v = x * inverse;
  v = v > limit ? limit : v;
  v = v < -limit ? -limit : v;
  v = is_nan(v) ? 0.0 : v;
  precise float rounded = v + round_magic;
  return int(floatBitsToUint(rounded) - floatBitsToUint(round_magic));
}

void find_query_absmax() {
  const uint thread = gl_LocalInvocationID.x;
  if (thread < 3u * items_at_once) query_absmax[thread] = 0u;
  barrier();
  for (uint kind = 0u; kind < 3u; ++kind) {
    if (!is_needed(kind)) continue;
    for (uint i = thread; i < item_count * head_width; i += threads) {
      const uint item = i / head_width;
      const uint magnitude = floatBitsToUint(query_value(kind, item, i % head_width)) & 0x7fffffffu;
      if (magnitude <= 0x7f800000u) atomicMax(query_absmax[kind * items_at_once + item], magnitude);
    }
  }
  barrier();
}

void load_queries() {
  find_query_absmax();
  for (uint kind = 0u; kind < 3u; ++kind) {
    if (!is_needed(kind)) continue;
    EACH_ITEM(item) {
      // From 2^-100 on, and no infinity.
      const uint absmax = min(query_absmax[kind * items_at_once + item], 0x7f7fffffu);
      const bool counts = absmax >= 0x0d800000u;
      const float inverse = counts ? div_f32(127.0, uintBitsToFloat(absmax)) : 0.0;
      query_scales[kind * items_at_once + item] = counts ? div_f32(uintBitsToFloat(absmax), 127.0) : 0.0;
      for (uint w = gl_LocalInvocationID.x; w < head_words; w += threads) {
        uint codes = 0u;
        for (uint j = 0u; j < 4u; ++j) {
          // What a key has in the place of the missing codes is multiplied by 0.
          if (odd_heads && w * 4u + j >= head_width) break;
          const int code = round_code(query_value(kind, item, w * 4u + j), inverse, 127.0);
          codes |= (uint(code) & 255u) << (8u * j);
        }
        queries[query_at(kind, item) + w] = codes;
      }
    }
  }
  barrier();
}

uint key_word(uint source, uint at) {
  return is_source(0u, source)   ? k0[word_at(3u, at)]
         : is_source(1u, source) ? k1[word_at(5u, at)]
                                 : k2[word_at(7u, at)];
}
uint value_word(uint source, uint at) {
  return is_source(0u, source)   ? v0[word_at(4u, at)]
         : is_source(1u, source) ? v1[word_at(6u, at)]
                                 : v2[word_at(8u, at)];
}

// Four codes from any byte of a row on; there is always a word behind it.
uint key_codes(uint source, uint row_at, uint byte) {
  const uint word = key_word(source, row_at + byte / 4u), shift = byte % 4u * 8u;
  if (!odd_heads || shift == 0u) return word;
  return word >> shift | key_word(source, row_at + byte / 4u + 1u) << (32u - shift);
}

uint value_codes(uint source, uint row_at, uint byte) {
  const uint word = value_word(source, row_at + byte / 4u), shift = byte % 4u * 8u;
  if (!odd_heads || shift == 0u) return word;
  return word >> shift | value_word(source, row_at + byte / 4u + 1u) << (32u - shift);
}

uint table_codes(uint row_at, uint byte) {
  const uint word = table[word_at(9u, row_at + byte / 4u)], shift = byte % 4u * 8u;
  if (!odd_heads || shift == 0u) return word;
  return word >> shift | table[word_at(9u, row_at + byte / 4u + 1u)] << (32u - shift);
}

float key_scale(uint source, uint row) {
  const uint begin = source_capacity(source) * key_stride();
  return uintBitsToFloat(key_word(source, begin + row * kv_heads + kv_head));
}

float value_scale(uint source, uint row) {
  const uint begin = value_capacity(source) * key_stride();
  return uintBitsToFloat(value_word(source, begin + row * kv_heads + kv_head));
}

float table_product(uint item, uint row) {
  const uint at = query_at(1u, item), byte = head_of(item) * head_width;
  int sum = 0;
  for (uint w = 0u; w < head_words; ++w) sum += dot_i8(queries[at + w], table_codes(row * table_stride(), byte + w * 4u));
  precise float both = query_scales[items_at_once + item] *
                       uintBitsToFloat(table[word_at(9u, distances * table_stride() + row * heads + head_of(item))]);
  precise float term = float(sum) * both;
  return term;
}

void find_products(Key key, uint keys, out float products[items_at_once]) {
  const uint thread = gl_LocalInvocationID.x;
  const uint kind = pinned_query && key.pinned ? 2u : 0u;
  int dots[items_at_once];
  ALL_ITEMS(item) dots[item] = 0;
  if (thread < keys) {
    const uint row = key.row * key_stride(), first = kv_head * head_width;
    for (uint w = 0u; w < head_words; ++w) {
      const uint codes = key_codes(key.source, row, first + w * 4u);
      EACH_ITEM(item) dots[item] += dot_i8(queries[query_at(kind, item) + w], codes);
    }
  }
  const float of_key = thread < keys ? key_scale(key.source, key.row) : 0.0;
  EACH_ITEM(item) {
    precise float both = query_scales[kind * items_at_once + item] * of_key;
    precise float sum = float(dots[item]) * both;
    products[item] = sum;
  }
}

float tile_scales[items_at_once];

// Exponentials to weights: 16 bits, as floats, with a scale for each item.
void quantize_weights(uint keys) {
  const uint thread = gl_LocalInvocationID.x;
  if (thread < keys) {
    const float of_value = value_scale(key_sources[thread], key_rows[thread]);
    EACH_ITEM(item) {
      precise float weight = weights[item * tile_keys + thread] * of_value;
      if (thread < item_keys[item]) weights[item * tile_keys + thread] = weight;
    }
  }
  barrier();
  lanes_max(true, 0.0);
  EACH_ITEM(item) {
    const float largest = min(lane_max(item), uintBitsToFloat(0x7f7fffffu));
    const bool counts = item_keys[item] != 0u && floatBitsToUint(largest) >= 0x0d800000u;
    tile_scales[item] = counts ? div_f32(largest, 32767.0) : 0.0;
    if (counts && thread < item_keys[item]) {
      const float inverse = div_f32(32767.0, largest);
      weights[item * tile_keys + thread] = float(round_code(weights[item * tile_keys + thread], inverse, 32767.0));
    }
  }
  barrier();
}

// Sums of integers have no order: a thread takes every fourth key and four columns, whose codes are one word, and what four
// threads have of the same columns goes through shared memory, where the keys have been.
void add_values(uint keys) {
  quantize_weights(keys);
  const uint thread = gl_LocalInvocationID.x;
  const uint words = threads / parts;
  for (uint c = 0u; c < columns; ++c) {
    const uint part = thread / words, word = thread % words;
    ivec4 acc[items_at_once];
    ALL_ITEMS(item) acc[item] = ivec4(0);
    if ((c * words + word) * 4u < head_width) {
      const uint byte = kv_head * head_width + (c * words + word) * 4u;
      for (uint j = part; j < keys; j += parts) {
        const uint codes = value_codes(key_sources[j], key_rows[j] * key_stride(), byte);
        const ivec4 values = ivec4(code_of(codes, 0u), code_of(codes, 1u), code_of(codes, 2u), code_of(codes, 3u));
        EACH_ITEM(item) {
          if (j < item_keys[item]) acc[item] += int(weights[item * tile_keys + j]) * values;
        }
      }
    }
    EACH_ITEM(item) {
      [[unroll]] for (uint i = 0u; i < 4u; ++i) {
        part_sums[(item * parts + part) * threads + word * 4u + i] = acc[item][i];
      }
    }
    barrier();
    EACH_ITEM(item) {
      if (item_keys[item] == 0u) continue;
      precise float sum = columns_out[item * columns + c] * rescales[item];
      if (tile_scales[item] != 0.0) {
        const uint at = item * parts * threads + thread;
        int all = 0;
        [[unroll]] for (uint i = 0u; i < parts; ++i) all += part_sums[at + i * threads];
        precise float added = float(all) * tile_scales[item];
        sum = sum + added;
      }
      columns_out[item * columns + c] = sum;
    }
    barrier();
  }
}
