#pragma once

// What a kernel sees of the keys and of one query: the next keys in memory, tile by tile.

#include <cstddef>
#include <cstdint>

#include "ops/attention/patterns/span.h"
#include "runtime/base/checked.h"
#include "runtime/base/quantize.h"
#include "runtime/base/tensor.h"

// A loop over numbers that do not depend on each other: vectors are made of it also where a build keeps code small
// (ops/CMakeLists.txt).
#if defined(OXB_WIDE_LOOPS)
#define OXB_WIDE_LOOP _Pragma("omp simd")
#else
#define OXB_WIDE_LOOP
#endif

namespace oxbow {

inline constexpr size_t kAttentionTile = 64;
inline constexpr size_t kCacheLine = 64;

/// Keys at equal distances in memory and in the sequence of positions, with their values; of one key/value
/// head. From one to the next it is `step` times the strides of AttentionShape. Element is float or
/// int8_t; float has no scales. Not initialised, since a tile has many and uses few.
template <typename Element>
struct KeySpan {
  const Element* k;
  const Element* v;
  const float* k_scales;
  const float* v_scales;
  size_t count;
  /// Positions from one key to the next, and that of the first, as distances count it.
  size_t step;
  size_t position;
  /// Row of the first in the last source, or kNoRow: they are in another.
  uint64_t row;
  /// The product with k is that of the pinned query.
  bool pinned;
};

/// Rows that will be wanted after those of a tile. A kernel asks for them a few at a time while it
/// computes: machines forget much of what they are asked for all at once.
template <typename Element>
struct RowsAhead {
  /// Null: there is nothing to ask for.
  const Element* rows = nullptr;
  /// Bytes from row to row, and how many cache lines of each row are wanted.
  size_t stride = 0;
  size_t row_lines = 1;
  /// Counted along the rows, this tile's lines are [first, first + count).
  size_t first = 0;
  size_t count = 0;
};

/// The next keys that a query sees, in ascending order of their positions.
template <typename Element>
struct KeyTile {
  KeySpan<Element> spans[kAttentionTile];
  size_t span_count;
  /// In all spans: 1 to kAttentionTile.
  size_t keys;
  RowsAhead<Element> keys_ahead;
  RowsAhead<Element> values_ahead;
};

/// Calls visit(span, index) for each span of a tile, whose keys are [index, index + span.count) of it.
template <typename Element, typename Visit>
void for_each_span(const KeyTile<Element>& keys, const Visit& visit) {
  size_t index = 0;
  for (size_t s = 0; s < keys.span_count; ++s) {
    visit(keys.spans[s], index);
    index += keys.spans[s].count;
  }
}

/// One query row of one head.
struct AttentionQuery {
  const float* q = nullptr;
  /// Not null: stands for q in the products with keys of pinned rows.
  const float* pinned_q = nullptr;
  /// The query's position in the sequence; of a query without a key of its own the number of positions.
  size_t position = 0;
  size_t head = 0;
  /// Of q.
  size_t row = 0;
};

/// Common to all calls of a step. Strides are in elements, from one row to the next.
struct AttentionShape {
  /// Of keys and queries, and of values and the output.
  size_t head_width = 0;
  size_t value_width = 0;
  float scale = 1.0f;
  size_t key_stride = 0;
  size_t value_stride = 0;
  /// Of both; 0 for floats.
  size_t scale_stride = 0;
  /// Rows of the tables that are read by distance, and which of them belongs to d = 0.
  size_t distances = 0;
  size_t relative_zero = 0;
};

/// Vectors of a query, in the memory that attention_scratch_bytes() tells: sums of a tile, which is only room
/// in between; then the queries in the products with keys, with a table, and with keys of pinned rows.
enum AttentionVector : size_t { kSums = 0, kContent = 1, kPosition = 2, kPinned = 3 };

/// Each of four-byte elements and aligned to 64.
[[gnu::always_inline]] constexpr size_t attention_vector_bytes(const AttentionShape& shape) {
  const size_t width = shape.head_width < shape.value_width ? shape.value_width : shape.head_width;
  return (width * 4 + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

/// The last vector only with a pinned query.
constexpr size_t attention_scratch_bytes(const AttentionShape& shape, bool pinned_query) {
  return (pinned_query ? 4 : 3) * attention_vector_bytes(shape);
}

template <typename T>
[[gnu::always_inline]] inline T* scratch_vector(std::byte* scratch, AttentionVector index,
                                                const AttentionShape& shape) {
  return reinterpret_cast<T*>(scratch + index * attention_vector_bytes(shape));
}

/// Quantises a query to int8, but keeps the codes in int16; returns the scale. `Primitives` keeps the code
/// inside the file of its kernel.
template <typename Primitives>
float quantize_query(const float* x, size_t count, int16_t* codes) {
  const QuantScale scale = quant_scale(absmax_f32(x, count));
  for (size_t d = 0; d < count; ++d) codes[d] = quantize_value(x[d], scale.inverse);
  return scale.scale;
}

}  // namespace oxbow
