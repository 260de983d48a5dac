// Attention as attention.h tells, in the CPU's order of arithmetic: tiles of 64 keys that are seen, a running maximum and
// sum, nothing stored of the scores but those of a tile.
//
// A group of threads serves one head of keys and up to four queries, which are items: item = row * group + head of the
// group. All of them number the keys that they see alike, and only see more or fewer, so that they share each tile: keys
// are read where they lie, values go through registers. In a tile a thread has a key while there are scores, columns of the
// output afterwards.
//
// What a thread keeps of each item lies in arrays whose loops have constant bounds, so that compilers make registers of
// them: an index that is not known would make them memory.
//
// The includer has the part that depends on the type of the keys.

#extension GL_EXT_control_flow_attributes : require

#include "ops/common/vulkan/math.glsl"

#include "ops/attention/dispatch_values.h"

const uint threads = 64u, tile_keys = 64u, lanes = 8u;
const uint items_at_once = OXB_ITEMS_AT_ONCE;
// Unrolled, so that compilers make registers of the arrays that have a place for each item: an index that is not known
// makes them memory. The second has the items that there are.
#define ALL_ITEMS(item) [[unroll]] for (uint item = 0u; item < items_at_once; ++item)
#define EACH_ITEM(item) ALL_ITEMS(item) if (item < item_count)

layout(local_size_x = 64) in;
// head_width in whole groups of 64 columns: what arrays are made for.
layout(constant_id = 0) const uint width_room = 64;
layout(constant_id = 1) const uint flags = 0;
// As many as there are, so that keys of one are read without asking which.
layout(constant_id = 2) const uint sources = OXB_MAX_SOURCES;
bool is_source(uint index, uint source) { return source == index || sources == index + 1u; }

// Which terms there are, by their numbers in terms/terms.inc.
#define HAS_TERM(number) ((flags >> number & 1u) != 0u)
#define OXB_TERM(number, Kind, Name, member) const bool member = HAS_TERM(number);
#define OXB_CPU_TERM(number, Kind, Name, member)
#include "ops/attention/terms/terms.inc"
#undef OXB_CPU_TERM
#undef OXB_TERM
const bool mask_queries = HAS_TERM(OXB_MASKS_QUERIES);
// Of int8 keys: heads do not begin at whole words.
const bool odd_heads = HAS_TERM(OXB_ODD_HEADS);

layout(std430, binding = 1) readonly buffer Q { float q[]; };
layout(std430, binding = 2) writeonly buffer Out { float result[]; };
layout(std430, binding = 10) readonly buffer Bias { float bias[]; };
layout(std430, binding = 11) readonly buffer QueryBias { float query_bias[]; };
layout(std430, binding = 12) readonly buffer Slopes { float slopes[]; };
// Of ops/common/seen_rows.comp.
layout(std430, binding = 13) readonly buffer Seen { uint seen[]; };
layout(std430, binding = 14) readonly buffer Mask { int mask[]; };
layout(std430, binding = 15) readonly buffer PinnedQ { float pinned_q[]; };

// Values. Shapes are no constants: compiling a shader takes longer than reading them.
uint query_rows() { return dispatch.values[OXB_QUERY_ROWS]; }
// Where the rows of the last source begin; the number of positions when it is a ring.
uint last_source() { return dispatch.values[OXB_LAST_SOURCE]; }
int relative_zero() { return int(dispatch.values[OXB_RELATIVE_ZERO]); }
// Blocks of items for each head of keys.
uint blocks() { return dispatch.values[OXB_BLOCKS]; }
// Of each source: rows held, head of the ring, rows there is room for, pinned rows.
uint source_count(uint source) { return dispatch.values[OXB_SOURCE_COUNT + source]; }
uint source_head(uint source) { return dispatch.values[OXB_SOURCE_HEAD + source]; }
uint source_capacity(uint source) { return dispatch.values[OXB_SOURCE_CAPACITY + source]; }
uint source_pinned(uint source) { return dispatch.values[OXB_SOURCE_PINNED + source]; }
uint value_capacity(uint source) {
  return dispatch.values[OXB_UNEVEN_SOURCE] != source ? source_capacity(source) : dispatch.values[OXB_VALUE_CAPACITY];
}
#define head_width dispatch.values[OXB_HEAD_WIDTH]
#define heads dispatch.values[OXB_HEADS]
// For each head of keys.
#define heads_of_group dispatch.values[OXB_GROUP_HEADS]
#define scale uintBitsToFloat(dispatch.values[OXB_SCALE])
// Rows of the table and the bias.
#define distances dispatch.values[OXB_DISTANCES]
// The pattern, as schema::Pattern; numbers beyond all positions are cut.
#define pattern_flags dispatch.values[OXB_PATTERN_FLAGS]
#define before dispatch.values[OXB_BEFORE]
#define after dispatch.values[OXB_AFTER]
#define first_positions dispatch.values[OXB_FIRST]
// Or the dilation of a window.
#define length dispatch.values[OXB_LENGTH]
#define causal ((pattern_flags & OXB_CAUSAL) != 0u)
#define wrap ((pattern_flags & OXB_WRAP) != 0u)
#define own ((pattern_flags & OXB_OWN) != 0u)
// Queries of different rows share a group of threads.
#define aligned ((pattern_flags & OXB_ALIGNED) != 0u)

uint all_positions() { return source_count(0u) + source_count(1u) + source_count(2u); }
uint q_width() { return heads * head_width; }

// --- Which keys a query sees: two spans of positions at equal distances, in ascending order.

uint span_first[2], span_count[2], span_step[2];

void add_range(uint index, uint first, uint end) {
  span_first[index] = first;
  span_count[index] = first < end ? end - first : 0u;
  span_step[index] = 1u;
}

#define OXB_GLSL
#include "ops/attention/patterns/patterns.inc"
#undef OXB_GLSL

void find_spans(uint query) {
  const uint positions = all_positions();
  add_range(0u, 0u, 0u);
  add_range(1u, 0u, 0u);
  if (positions == 0u) return;
  switch (pattern_flags & 255u) {
#define OXB_PATTERN(number, Kind, Name) \
  case number:                          \
    Name(query, positions);             \
    break;
#define OXB_CPU_PATTERN(number, Kind, Name)
#include "ops/attention/patterns/patterns.inc"
#undef OXB_CPU_PATTERN
#undef OXB_PATTERN
  }
}

// Of a query that has found its spans. With a mask the rows of the last source are those that it leaves.
uint keys_seen(uint row) {
  if (mask_queries && mask[word_at(14u, row)] == 0) return 0u;
  const uint count = span_count[0] + span_count[1];
  if (!key_mask || count <= last_source()) return count;
  return last_source() + seen[word_at(13u, 2u * (count - last_source()) - 1u)];
}

uint position_of_key(uint n) {
  if (key_mask) return n < last_source() ? n : last_source() + seen[word_at(13u, 2u * (n - last_source()))];
  return n < span_count[0] ? span_first[0] + n * span_step[0]
                           : span_first[1] + (n - span_count[0]) * span_step[1];
}

// --- Where a key lies.

struct Key {
  uint source;
  uint row;
  bool pinned;
  // Distances count from here to a query that is further on.
  uint reach;
  uint position;
};

Key find_key(uint n) {
  Key key;
  key.position = position_of_key(n);
  uint first = 0u;
  key.source = 0u;
  while (key.source < 2u && key.position >= first + source_count(key.source)) {
    first += source_count(key.source);
    ++key.source;
  }
  const uint capacity = source_capacity(key.source), pinned = source_pinned(key.source);
  const uint r = key.position - first;
  key.pinned = r < pinned;
  key.reach = key.pinned ? first + capacity : 0xffffffffu;
  key.row = r;
  if (!key.pinned) {
    uint turned = source_head(key.source) + r - pinned;
    if (turned >= capacity - pinned) turned -= capacity - pinned;
    key.row = pinned + turned;
  }
  return key;
}

// --- The items of this group of threads.

uint first_item, item_count, kv_head;

uint row_of(uint item) { return (first_item + item) / heads_of_group; }
uint head_of(uint item) { return kv_head * heads_of_group + (first_item + item) % heads_of_group; }
uint position_of_query(uint row) { return own ? last_source() + row : all_positions(); }

void find_items(uint group) {
  kv_head = group / blocks();
  const uint block = group % blocks();
  uint end = query_rows() * heads_of_group;
  first_item = block * items_at_once;
  if (!aligned) {
    const uint row_blocks = (heads_of_group + items_at_once - 1u) / items_at_once;
    const uint row = block / row_blocks;
    first_item = row * heads_of_group + block % row_blocks * items_at_once;
    end = (row + 1u) * heads_of_group;
  }
  item_count = min(items_at_once, end - first_item);
}

// What the products see: 0 with keys, 1 with the table, 2 with keys of pinned rows.
float query_value(uint kind, uint item, uint d) {
  const uint column = head_of(item) * head_width + d, at = row_of(item) * q_width() + column;
  float value = 0.0;
  if (kind == 2u) {
    value = pinned_q[word_at(15u, at)];
  } else {
    value = q[word_at(1u, at)];
  }
  if (!relative || kind == 1u) return value;
  precise float sum = value + query_bias[word_at(11u, column)];
  return sum;
}

bool is_needed(uint kind) { return kind == 0u || (kind == 1u && relative) || (kind == 2u && pinned_query); }

// --- What the type of the keys decides.

void load_queries();
// Products of this thread's key with the queries. All threads call it.
void find_products(Key key, uint keys, out float products[items_at_once]);
// Adds the tile's values, weighted by `weights`, to the columns of this thread.
void add_values(uint keys);

shared float weights[items_at_once * tile_keys];
shared float lane_values[items_at_once * lanes];
shared uint key_sources[tile_keys];
shared uint key_rows[tile_keys];
// Keys of the tile that each item sees.
uint item_keys[items_at_once];
float rescales[items_at_once];

uint keys_of(uint item) {
  uint keys = item_keys[0];
  ALL_ITEMS(i) keys = i == item ? item_keys[i] : keys;
  return keys;
}

uint table_row(Key key, uint query) {
  const int d = int(min(query, key.reach)) - int(key.position);
  return uint(clamp(d + relative_zero(), 0, int(distances) - 1));
}

#define OXB_GLSL
#include "ops/attention/terms/terms.inc"
#undef OXB_GLSL

float with_terms_of(uint stage, float score, Key key, uint item, uint row) {
#define OXB_TERM(number, Kind, Name, member) \
  if (member) score = Name(stage, score, key, item, row);
#define OXB_CPU_TERM(number, Kind, Name, member)
#include "ops/attention/terms/terms.inc"
#undef OXB_CPU_TERM
#undef OXB_TERM
  return score;
}

float with_terms(float product, Key key, uint item, uint row) {
  precise float score = with_terms_of(OXB_BEFORE_SCALE, product, key, item, row) * scale;
  return with_terms_of(OXB_AFTER_SCALE, score, key, item, row);
}

// Lane i of an item's eight takes what is at i, i + 8, ... of its keys.
void lanes_max(bool magnitudes, float floor_value) {
  const uint thread = gl_LocalInvocationID.x;
  if (thread < items_at_once * lanes) {
    const uint item = thread / lanes;
    const uint keys = keys_of(item);
    float most = floor_value;
    for (uint j = thread % lanes; j < keys; j += lanes) {
      float value = weights[item * tile_keys + j];
      if (magnitudes) value = abs_f32(value);
      if (!is_nan(value)) most = value > most ? value : most;
    }
    lane_values[thread] = most;
  }
  barrier();
}

float lane_max(uint item) {
  float most = lane_values[item * lanes];
  for (uint lane = 1u; lane < lanes; ++lane) most = max(most, lane_values[item * lanes + lane]);
  return most;
}

void lanes_sum() {
  const uint thread = gl_LocalInvocationID.x;
  if (thread < items_at_once * lanes) {
    const uint item = thread / lanes;
    const uint keys = keys_of(item);
    precise float sum = 0.0;
    for (uint j = thread % lanes; j < keys; j += lanes) sum = sum + weights[item * tile_keys + j];
    lane_values[thread] = sum;
  }
  barrier();
}

float lane_sum(uint item) {
  const uint at = item * lanes;
  return combine_sums(float[8](lane_values[at], lane_values[at + 1u], lane_values[at + 2u], lane_values[at + 3u],
                               lane_values[at + 4u], lane_values[at + 5u], lane_values[at + 6u], lane_values[at + 7u]));
}

const uint columns = width_room / threads;
float columns_out[items_at_once * columns];
float maxima[items_at_once], sums[items_at_once];

// Scores to exponentials; what was summed up so far is to be multiplied by `rescales`.
void add_scores() {
  const uint thread = gl_LocalInvocationID.x;
  const float minus_infinity = uintBitsToFloat(0xff800000u);
  barrier();
  lanes_max(false, minus_infinity);
  EACH_ITEM(item) {
    if (item_keys[item] == 0u) continue;
    const float most = max(maxima[item], lane_max(item));
    precise float fall = maxima[item] - most;
    rescales[item] = exp_f32(fall);
    maxima[item] = most;
    if (thread < item_keys[item]) {
      precise float difference = weights[item * tile_keys + thread] - most;
      weights[item * tile_keys + thread] = exp_f32(difference);
    }
  }
  barrier();
  lanes_sum();
  EACH_ITEM(item) {
    if (item_keys[item] == 0u) continue;
    precise float sum = sums[item] * rescales[item] + lane_sum(item);
    sums[item] = sum;
  }
  barrier();
}

void attend(uint group) {
  const uint thread = gl_LocalInvocationID.x;
  find_items(group);
  load_queries();
  uint counts[items_at_once];
  uint most = 0u;
  ALL_ITEMS(item) {
    counts[item] = 0u;
    if (item < item_count) {
      find_spans(position_of_query(row_of(item)));
      counts[item] = keys_seen(row_of(item));
    }
    most = max(most, counts[item]);
    maxima[item] = uintBitsToFloat(0xff800000u);
    sums[item] = 0.0;
    for (uint c = 0u; c < columns; ++c) columns_out[item * columns + c] = 0.0;
  }
  // Keys have the same numbers for all items: the spans of the last one are the longest.
  for (uint begin = 0u; begin < most; begin += tile_keys) {
    const uint keys = min(tile_keys, most - begin);
    ALL_ITEMS(item) {
      item_keys[item] = counts[item] > begin ? min(tile_keys, counts[item] - begin) : 0u;
    }
    Key key = Key(0u, 0u, false, 0u, 0u);
    if (thread < keys) key = find_key(begin + thread);
    uint rows[items_at_once];
    ALL_ITEMS(item) {
      rows[item] = item < item_count ? table_row(key, position_of_query(row_of(item))) : 0u;
    }
    key_sources[thread] = key.source;
    key_rows[thread] = key.row;
    barrier();
    float products[items_at_once];
    find_products(key, keys, products);
    EACH_ITEM(item) {
      if (thread < item_keys[item]) {
        weights[item * tile_keys + thread] = with_terms(products[item], key, item, rows[item]);
      }
    }
    add_scores();
    add_values(keys);
    barrier();
  }
  EACH_ITEM(item) {
    const float inverse = sums[item] == 0.0 ? 0.0 : div_f32(1.0, sums[item]);
    for (uint c = 0u; c < columns; ++c) {
      const uint d = c * threads + thread;
      precise float value = columns_out[item * columns + c] * inverse;
      if (d < head_width) result[word_at(2u, row_of(item) * q_width() + head_of(item) * head_width + d)] = value;
    }
  }
}

void main() {
  const uint group = group_index();
  if (group < blocks() * (heads / heads_of_group)) attend(group);
}
