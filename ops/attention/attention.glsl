// Attention as attention.h tells, in the CPU's order of arithmetic: tiles of 64 keys that are seen, a running maximum and
// sum, nothing stored of the scores but those of a tile.
//
// A group of threads serves one head of keys and up to four queries, which are items: item = row * group + head of the
// group. All of them number the keys that they see alike, and only see more or fewer, so that they share each tile: keys
// go through shared memory, values through registers. In a tile a thread has a key while there are scores, columns of the
// output afterwards.
//
// The includer has the part that depends on the type of the keys.

#include "ops/common/vulkan/math.glsl"

const uint threads = 64u, tile_keys = 64u, lanes = 8u;
// kItemsAtOnce and kMaxVulkanHeadWidth of vulkan.cc.
const uint items_at_once = 4u;

layout(local_size_x = 64) in;
// head_width in whole groups of 64 columns: what arrays are made for.
layout(constant_id = 0) const uint width_room = 64;
layout(constant_id = 1) const uint flags = 0;

// The same numbers are in vulkan.cc.
const bool relative = (flags & 1u) != 0u, distance_bias = (flags & 2u) != 0u, alibi = (flags & 4u) != 0u;
const bool key_mask = (flags & 8u) != 0u, mask_queries = (flags & 16u) != 0u, pinned_query = (flags & 32u) != 0u;
// Of int8 keys: heads do not begin at whole words.
const bool odd_heads = (flags & 64u) != 0u;

layout(std430, binding = 1) readonly buffer Q { float q[]; };
layout(std430, binding = 2) writeonly buffer Out { float result[]; };
layout(std430, binding = 10) readonly buffer Bias { float bias[]; };
layout(std430, binding = 11) readonly buffer QueryBias { float query_bias[]; };
layout(std430, binding = 12) readonly buffer Slopes { float slopes[]; };
// Of ops/common/seen_rows.comp.
layout(std430, binding = 13) readonly buffer Seen { uint seen[]; };
layout(std430, binding = 14) readonly buffer Mask { int mask[]; };
layout(std430, binding = 15) readonly buffer PinnedQ { float pinned_q[]; };

// Slot. Shapes are no constants: compiling a shader takes longer than reading them.
uint query_rows() { return slot.values[0]; }
uint memory_slots() { return slot.values[1]; }
int relative_zero() { return int(slot.values[2]); }
// Blocks of items for each head of keys.
uint blocks() { return slot.values[3]; }
// Of three sources: rows held, head of the ring, rows there is room for, pinned rows.
uint source_count(uint source) { return slot.values[4u + source]; }
uint source_head(uint source) { return slot.values[7u + source]; }
uint source_capacity(uint source) { return slot.values[10u + source]; }
uint source_pinned(uint source) { return slot.values[13u + source]; }
// Only the last source may have room for more or fewer values than keys.
uint value_capacity(uint source) { return slot.values[16u] != source ? source_capacity(source) : slot.values[17]; }
#define head_width slot.values[18]
#define heads slot.values[19]
// For each head of keys.
#define heads_of_group slot.values[20]
#define scale uintBitsToFloat(slot.values[21])
// Rows of the table and the bias.
#define distances slot.values[22]
// The pattern, as schema::Pattern; numbers beyond all slots are cut. Flags: its kind in the low byte.
#define pattern_flags slot.values[23]
#define before slot.values[24]
#define after slot.values[25]
#define first_slots slot.values[26]
// Or the dilation of a window.
#define length slot.values[27]
#define pattern (pattern_flags & 255u)
#define causal ((pattern_flags & 256u) != 0u)
#define wrap ((pattern_flags & 512u) != 0u)
#define own ((pattern_flags & 1024u) != 0u)
// Queries of different rows share a group of threads.
#define aligned ((pattern_flags & 2048u) != 0u)

uint all_slots() { return source_count(0u) + source_count(1u) + source_count(2u); }
uint q_width() { return heads * head_width; }

// --- Which keys a query sees: two spans of slots at equal distances, in ascending order.

uint span_first[2], span_count[2], span_step[2];

void add_range(uint index, uint first, uint end) {
  span_first[index] = first;
  span_count[index] = first < end ? end - first : 0u;
  span_step[index] = 1u;
}

// As patterns/window.h.
void window_spans(uint query, uint slots) {
  const uint dilation = length;
  const uint end = causal ? min(query + 1u, slots) : slots;
  const uint kept = min(first_slots, end);
  add_range(0u, 0u, kept);
  uint key = query - min(before, query / dilation) * dilation;
  if (key < kept) key += (kept - key + dilation - 1u) / dilation * dilation;
  uint newest = query;
  if (query + 1u < end) newest += min(after, (end - 1u - query) / dilation) * dilation;
  if (newest >= end) {
    if (newest < dilation) return;
    newest -= dilation;
  }
  if (key > newest) return;
  span_first[1] = key;
  span_count[1] = (newest - key) / dilation + 1u;
  span_step[1] = dilation;
}

// As patterns/chunked.h.
void chunked_spans(uint query, uint slots) {
  const uint end = causal ? min(query + 1u, slots) : slots;
  const uint chunk = query / length;
  const uint chunks = max((slots + length - 1u) / length, chunk + 1u);
  if (wrap && before + after + 1u >= chunks) {
    add_range(0u, 0u, end);
  } else if (wrap && chunk < before) {
    add_range(0u, 0u, min((chunk + after + 1u) * length, end));
    add_range(1u, (chunks - (before - chunk)) * length, min(chunks * length, end));
  } else if (wrap && chunk + after >= chunks) {
    add_range(0u, 0u, min((chunk + after + 1u - chunks) * length, end));
    add_range(1u, (chunk - before) * length, min(chunks * length, end));
  } else {
    add_range(0u, (chunk - min(before, chunk)) * length, min(min(chunk + after + 1u, chunks) * length, end));
  }
}

// The numbers of schema::PatternKind.
void find_spans(uint query) {
  const uint slots = all_slots();
  add_range(0u, 0u, 0u);
  add_range(1u, 0u, 0u);
  if (slots == 0u) return;
  const uint causal_end = min(query + 1u, slots);
  if (pattern == 0u) {
    add_range(0u, 0u, causal_end);
  } else if (pattern == 1u) {
    add_range(0u, 0u, slots);
  } else if (pattern == 2u) {
    window_spans(query, slots);
  } else if (pattern == 3u) {
    add_range(0u, 0u, min(max(query + 1u, length), slots));
  } else if (pattern == 4u) {
    chunked_spans(query, slots);
  } else if (pattern == 5u) {
    const uint window = query - min(before, query), start = query % length;
    if (start < window) {
      span_first[0] = start;
      span_count[0] = (window - start + length - 1u) / length;
      span_step[0] = length;
    }
    add_range(1u, window, causal_end);
  } else {
    const uint block = query / length * length;
    add_range(0u, block - min(before, block), causal_end);
  }
}

// Of a query that has found its spans. With a mask the rows of the last source are those that it leaves.
uint keys_seen(uint row) {
  if (mask_queries && mask[row] == 0) return 0u;
  const uint count = span_count[0] + span_count[1];
  if (!key_mask || count <= memory_slots()) return count;
  return memory_slots() + seen[2u * (count - memory_slots()) - 1u];
}

uint slot_of_key(uint n) {
  if (key_mask) return n < memory_slots() ? n : memory_slots() + seen[2u * (n - memory_slots())];
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
  uint slot;
};

Key find_key(uint n) {
  Key key;
  key.slot = slot_of_key(n);
  uint first = 0u;
  key.source = 0u;
  while (key.source < 2u && key.slot >= first + source_count(key.source)) {
    first += source_count(key.source);
    ++key.source;
  }
  const uint capacity = source_capacity(key.source), pinned = source_pinned(key.source);
  const uint r = key.slot - first;
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
uint slot_of_query(uint row) { return own ? memory_slots() + row : all_slots(); }

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
    value = pinned_q[at];
  } else {
    value = q[at];
  }
  if (!relative || kind == 1u) return value;
  precise float sum = value + query_bias[column];
  return sum;
}

bool is_needed(uint kind) { return kind == 0u || (kind == 1u && relative) || (kind == 2u && pinned_query); }

// --- What the type of the keys decides.

void load_queries();
// Scores of this thread's key, without what follows the relative term. All threads call it.
void find_products(Key key, uint keys, uint rows[items_at_once], out float products[items_at_once]);
// Adds the tile's values, weighted by `weights`, to the columns of this thread.
void add_values(uint keys);

shared float weights[items_at_once * tile_keys];
shared float lane_values[items_at_once * lanes];
shared uint key_sources[tile_keys];
shared uint key_rows[tile_keys];
// Keys of the tile that each item sees.
uint item_keys[items_at_once];
float rescales[items_at_once];

uint table_row(Key key, uint query) {
  const int d = int(min(query, key.reach)) - int(key.slot);
  return uint(clamp(d + relative_zero(), 0, int(distances) - 1));
}

float with_terms(float product, Key key, uint item, uint row) {
  const uint head = head_of(item), query = slot_of_query(row_of(item));
  precise float score = product * scale;
  if (distance_bias) score = score + bias[row * heads + head];
  if (alibi) {
    const int d = int(min(query, key.reach)) - int(key.slot);
    precise float term = slopes[head] * float(d);
    score = score - term;
  }
  return score;
}

// Lane i of an item's eight takes what is at i, i + 8, ... of its keys.
void lanes_max(bool magnitudes, float floor_value) {
  const uint thread = gl_LocalInvocationID.x;
  if (thread < items_at_once * lanes) {
    const uint item = thread / lanes;
    float most = floor_value;
    for (uint j = thread % lanes; j < item_keys[item]; j += lanes) {
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
    precise float sum = 0.0;
    for (uint j = thread % lanes; j < item_keys[item]; j += lanes) sum = sum + weights[item * tile_keys + j];
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
  for (uint item = 0u; item < item_count; ++item) {
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
  for (uint item = 0u; item < item_count; ++item) {
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
  for (uint item = 0u; item < items_at_once; ++item) {
    counts[item] = 0u;
    if (item < item_count) {
      find_spans(slot_of_query(row_of(item)));
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
    for (uint item = 0u; item < items_at_once; ++item) {
      item_keys[item] = counts[item] > begin ? min(tile_keys, counts[item] - begin) : 0u;
    }
    Key key = Key(0u, 0u, false, 0u, 0u);
    if (thread < keys) key = find_key(begin + thread);
    uint rows[items_at_once];
    for (uint item = 0u; item < items_at_once; ++item) {
      rows[item] = item < item_count ? table_row(key, slot_of_query(row_of(item))) : 0u;
    }
    key_sources[thread] = key.source;
    key_rows[thread] = key.row;
    barrier();
    float products[items_at_once];
    find_products(key, keys, rows, products);
    for (uint item = 0u; item < item_count; ++item) {
      if (thread < item_keys[item]) {
        weights[item * tile_keys + thread] = with_terms(products[item], key, item, rows[item]);
      }
    }
    add_scores();
    add_values(keys);
    barrier();
  }
  for (uint item = 0u; item < item_count; ++item) {
    const float inverse = sums[item] == 0.0 ? 0.0 : div_f32(1.0, sums[item]);
    for (uint c = 0u; c < columns; ++c) {
      const uint d = c * threads + thread;
      precise float value = columns_out[item * columns + c] * inverse;
      if (d < head_width) result[row_of(item) * q_width() + head_of(item) * head_width + d] = value;
    }
  }
}

void main() {
  const uint group = group_index();
  if (group < blocks() * (heads / heads_of_group)) attend(group);
}
