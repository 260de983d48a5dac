#pragma once

// The steps of attention.h in their order, once for all instruction sets. What each of them does
// for itself are the loops over the head width, given as a struct of static functions:
//
//   dots        dots[j] = x . row_j for j < count, rows `stride` elements apart, which may be
//               negative. int8 queries come as int16, which suits multiply-and-add of pairs.
//   accumulate  acc[d] += weights[j] * row_j[d], for floats one j after the other
//
// The rest are loops over the keys of a tile that compilers vectorise; in an ISA's file they do so
// with its flags. Everything is in an unnamed namespace and nothing of the standard library is
// called, so that no copy compiled with these flags gets outside the file that includes this.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "ops/attention/attention.h"
#include "runtime/base/math.h"
#include "runtime/base/quantize.h"

namespace oxbow {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr float kWeightMax = 32767.0f;

/// Turns the scores of a tile into exponentials relative to the new maximum; returns the factor that
/// brings what was accumulated under the old one to the new.
inline float add_scores(float* scores, size_t count, AttentionState* state) {
  const float new_max = max_f32(count, state->max, [=](size_t j) { return scores[j]; });
  const float rescale = exp_f32(state->max - new_max);
  for (size_t j = 0; j < count; ++j) scores[j] = exp_f32(scores[j] - new_max);
  state->sum = state->sum * rescale + sum_f32(count, [=](size_t j) { return scores[j]; });
  state->max = new_max;
  return rescale;
}

/// Calls visit(run, index) for each run of a tile, whose keys are [index, index + run.count) of it.
template <typename Element, typename Visit>
void for_each_run(const KeyTile<Element>& keys, const Visit& visit) {
  size_t index = 0;
  for (size_t r = 0; r < keys.run_count; ++r) {
    visit(keys.runs[r], index);
    index += keys.runs[r].count;
  }
}

/// Keys that are computed between two looks ahead, and how much is asked for at once.
constexpr size_t kKeysAtOnce = 16;

/// Asks for the part of the rows ahead, of keys or values, that falls to keys [begin, end) of a tile.
template <typename Element>
void ask_ahead(const RowsAhead<Element>& ahead, const Element* rows, size_t begin, size_t end) {
  size_t line = ahead.first + ahead.count * begin / kAttentionTile;
  const size_t last = ahead.first + ahead.count * end / kAttentionTile;
  const auto* row = reinterpret_cast<const char*>(rows) + line / ahead.row_lines * ahead.stride;
  size_t at = line % ahead.row_lines;
  while (line < last) {
    const size_t rest = ahead.row_lines - at, count = last - line < rest ? last - line : rest;
    for (size_t i = at; i < at + count; ++i) __builtin_prefetch(row + i * kCacheLine);
    line += count;
    row += ahead.stride;
    at = 0;
  }
}

/// Calls body(first, count) for the keys of a run, a few at a time, with looks ahead before each.
template <typename Element, typename Body>
[[gnu::always_inline]] inline void with_looks_ahead(const KeyTile<Element>& keys,
                                                    const Element* ahead, size_t index,
                                                    size_t count, const Body& body) {
  if (keys.ahead.k == nullptr) return body(size_t{0}, count);
  for (size_t j = 0; j < count; j += kKeysAtOnce) {
    const size_t part = count - j < kKeysAtOnce ? count - j : kKeysAtOnce;
    ask_ahead(keys.ahead, ahead, index + j, index + j + part);
    body(j, part);
  }
}

/// How the keys of a run share the rows of a table of distances. The first `last_row_keys` are so
/// far back that they have its last row; then rows follow each other down, a step apart, from `row`;
/// keys from `end` on have row 0.
struct TableRows {
  size_t last_row_keys;
  size_t row;
  size_t end;
};

inline TableRows table_rows(size_t query_slot, const AttentionShape& shape, size_t slot,
                            size_t step, size_t count) {
  const auto last = static_cast<int64_t>(shape.distances - 1);
  const auto slots = static_cast<int64_t>(step), keys = static_cast<int64_t>(count);
  const int64_t t = static_cast<int64_t>(query_slot) - static_cast<int64_t>(slot) +
                    static_cast<int64_t>(shape.relative_zero);
  int64_t far = t > last ? (t - last + slots - 1) / slots : 0;
  far = far < keys ? far : keys;
  const int64_t row = t - far * slots;
  int64_t end = row < 0 ? far : far + row / slots + 1;
  end = end < keys ? end : keys;
  return {static_cast<size_t>(far), row < 0 ? 0 : static_cast<size_t>(row),
          static_cast<size_t>(end)};
}

/// Calls visit(j, t) for the keys j of a run, with the table row t that belongs to each.
template <typename Visit>
void for_each_row(const TableRows& rows, size_t step, size_t count, size_t last,
                  const Visit& visit) {
  for (size_t j = 0; j < rows.last_row_keys; ++j) visit(j, last);
  for (size_t j = rows.last_row_keys; j < rows.end; ++j) {
    visit(j, rows.row - (j - rows.last_row_keys) * step);
  }
  for (size_t j = rows.end; j < count; ++j) visit(j, size_t{0});
}

/// What one tile needs of the relative term: a value for each of its keys.
template <typename Dot>
struct RelativeTile {
  Dot dots[kAttentionTile];
  /// int8 only.
  float scales[kAttentionTile];
  float bias[kAttentionTile];
  /// Relative keys only: the whole term.
  float key_terms[kAttentionTile];
};

/// The product of key j of a run with row t of the table.
template <typename Primitives, typename Element>
float key_term(const AttentionQuery<Element>& query, const AttentionShape& shape,
               const KeyRun<Element>& run, size_t j, size_t t) {
  const Element* k = run.k + j * run.step * shape.key_stride;
  const Element* row = query.table + t * shape.table_stride;
  if constexpr (sizeof(Element) == 1) {
    int32_t sum = 0;
    for (size_t d = 0; d < shape.head_width; ++d) sum += int32_t{k[d]} * int32_t{row[d]};
    return static_cast<float>(sum) * (run.k_scales[j * run.step * shape.key_scale_stride] *
                                      query.table_scales[t * shape.table_scale_stride]);
  } else {
    float sum = 0.0f;
    Primitives::dots(k, row, 0, 1, shape.head_width, &sum);
    return sum;
  }
}

/// Fills [index, index + run.count). Keys that share a row of the table share its product.
template <typename Primitives, typename X, typename Element, typename Dot>
void relative_run(const X* x, const AttentionQuery<Element>& query, const AttentionShape& shape,
                  const KeyRun<Element>& run, size_t index, RelativeTile<Dot>* tile) {
  const TableRows rows = table_rows(query.slot, shape, run.slot, run.step, run.count);
  const size_t last = shape.distances - 1;
  const auto repeat = [&](size_t row, size_t first, size_t end) {
    if (first == end) return;
    Dot* dots = tile->dots + index;
    Primitives::dots(x, query.table + row * shape.table_stride, 0, 1, shape.head_width,
                     dots + first);
    for (size_t j = first + 1; j < end; ++j) dots[j] = dots[first];
  };
  repeat(last, 0, rows.last_row_keys);
  const size_t between = rows.end - rows.last_row_keys;
  if (between != 0) {
    // Only of two rows it is known that their distance is within the table.
    const size_t stride = between == 1 ? 0 : run.step * shape.table_stride;
    Primitives::dots(x, query.table + rows.row * shape.table_stride,
                     -static_cast<ptrdiff_t>(stride), between, shape.head_width,
                     tile->dots + index + rows.last_row_keys);
  }
  repeat(0, rows.end, run.count);
  const auto gather = [&](const float* from, size_t row_stride, float* to) {
    for_each_row(rows, run.step, run.count, last,
                 [=](size_t j, size_t t) { to[j] = from[t * row_stride]; });
  };
  gather(query.bias, shape.bias_stride, tile->bias + index);
  if constexpr (sizeof(Element) == 1) {
    gather(query.table_scales, shape.table_scale_stride, tile->scales + index);
  }
  if (shape.relative_keys) {
    for_each_row(rows, run.step, run.count, last, [&](size_t j, size_t t) {
      tile->key_terms[index + j] = key_term<Primitives>(query, shape, run, j, t);
    });
  }
}

/// The terms of the score from the segments on, the scale among them.
template <typename Element>
void add_terms(const AttentionQuery<Element>& query, const AttentionShape& shape,
               const KeyTile<Element>& keys, const AttentionState& state, float* scores) {
  if (shape.segments) {
    for_each_run(keys, [&](const KeyRun<Element>& run, size_t index) {
      for (size_t j = 0; j < run.count; ++j) {
        const int32_t type = run.types == nullptr ? 0 : run.types[j * run.step];
        scores[index + j] = scores[index + j] + state.segment[type == query.type ? 0 : 1];
      }
    });
  }
  for (size_t j = 0; j < keys.keys; ++j) scores[j] = scores[j] * shape.scale;
  if (shape.distance_bias) {
    for_each_run(keys, [&](const KeyRun<Element>& run, size_t index) {
      const TableRows rows = table_rows(query.slot, shape, run.slot, run.step, run.count);
      for_each_row(rows, run.step, run.count, shape.distances - 1, [&](size_t j, size_t t) {
        scores[index + j] = scores[index + j] + query.bias[t * shape.bias_stride];
      });
    });
  }
  if (shape.alibi) {
    for_each_run(keys, [&](const KeyRun<Element>& run, size_t index) {
      const auto d = static_cast<int64_t>(query.slot) - static_cast<int64_t>(run.slot);
      for (size_t j = 0; j < run.count; ++j) {
        const auto distance = static_cast<float>(d - static_cast<int64_t>(j * run.step));
        scores[index + j] = scores[index + j] - query.slope * distance;
      }
    });
  }
}

/// Vector `index` of those that attention_scratch_bytes() makes room for.
template <typename T>
T* scratch_vector(const AttentionState& state, size_t index, const AttentionShape& shape) {
  const size_t bytes =
      (shape.head_width * 4 + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  return reinterpret_cast<T*>(state.scratch + index * bytes);
}

/// What vectors 0 to 3 hold between calls: sums of a tile, which is only room in between, then the
/// queries in the products with keys, with the table, and with keys of pinned rows.
enum : size_t { kSums = 0, kContent = 1, kPosition = 2, kPinned = 3 };

inline void add_vectors(const float* a, const float* b, size_t count, float* sum) {
  for (size_t d = 0; d < count; ++d) sum[d] = a[d] + b[d];
}

/// The part of begin that both types share.
template <typename Element>
void begin_query(const AttentionQuery<Element>& query, const AttentionShape& shape,
                 AttentionState* state, float* out) {
  state->max = kMinusInfinity;
  state->sum = 0.0f;
  if (shape.segments) {
    float* biased = scratch_vector<float>(*state, kSums, shape);
    add_vectors(query.q, query.segment_bias, shape.head_width, biased);
    for (size_t i = 0; i < 2; ++i) {
      state->segment[i] =
          dot_f32(biased, query.segment_table + i * shape.segment_stride, shape.head_width);
    }
  }
  for (size_t d = 0; d < shape.head_width; ++d) out[d] = 0.0f;
}

inline void end_query(const AttentionShape& shape, AttentionState* state, float* out) {
  const float inverse = state->sum == 0.0f ? 0.0f : 1.0f / state->sum;
  for (size_t d = 0; d < shape.head_width; ++d) out[d] = out[d] * inverse;
}

/// Clamps before it converts: no cast of a float that does not fit.
inline int16_t quantize_weight(float w, float inverse) {
  float x = w * inverse;
  x = x > kWeightMax ? kWeightMax : x;
  x = x < -kWeightMax ? -kWeightMax : x;
  x = x == x ? x : 0.0f;
  const uint32_t bits = std::bit_cast<uint32_t>(x + kRoundMagic);
  return static_cast<int16_t>(static_cast<int32_t>(bits - std::bit_cast<uint32_t>(kRoundMagic)));
}

/// Quantises to int8, but keeps the codes in int16.
inline float quantize_query(const float* x, size_t count, int16_t* codes) {
  const QuantScale scale = quant_scale(absmax_f32(x, count));
  for (size_t d = 0; d < count; ++d) codes[d] = quantize_value(x[d], scale.inverse);
  return scale.scale;
}

template <typename Primitives>
struct FloatAttention {
  static void begin(const AttentionQuery<float>& query, const AttentionShape& shape,
                    AttentionState* state, float* out) {
    begin_query(query, shape, state, out);
    if (!shape.relative) return;
    add_vectors(query.q, query.query_bias, shape.head_width,
                scratch_vector<float>(*state, kContent, shape));
    if (query.pinned_q == nullptr) return;
    add_vectors(query.pinned_q, query.query_bias, shape.head_width,
                scratch_vector<float>(*state, kPinned, shape));
  }

  static void tile(const AttentionQuery<float>& query, const AttentionShape& shape,
                   const KeyTile<float>& keys, AttentionState* state, float* out) {
    const size_t head_width = shape.head_width;
    const float* content =
        shape.relative ? scratch_vector<float>(*state, kContent, shape) : query.q;
    const float* pinned = shape.relative && query.pinned_q != nullptr
                              ? scratch_vector<float>(*state, kPinned, shape)
                              : query.pinned_q;
    float scores[kAttentionTile];
    RelativeTile<float> relative;
    for_each_run(keys, [&](const KeyRun<float>& run, size_t index) {
      const size_t stride = run.step * shape.key_stride;
      with_looks_ahead(keys, keys.ahead.k, index, run.count, [&](size_t first, size_t part) {
        Primitives::dots(run.pinned ? pinned : content, run.k + first * stride,
                         static_cast<ptrdiff_t>(stride), part, head_width, scores + index + first);
      });
      if (shape.relative) relative_run<Primitives>(query.q, query, shape, run, index, &relative);
    });
    if (shape.relative) {
      for (size_t j = 0; j < keys.keys; ++j) {
        scores[j] = (scores[j] + relative.dots[j]) + relative.bias[j];
      }
    }
    if (shape.relative_keys) {
      for (size_t j = 0; j < keys.keys; ++j) scores[j] = scores[j] + relative.key_terms[j];
    }
    add_terms(query, shape, keys, *state, scores);
    const float rescale = add_scores(scores, keys.keys, state);

    float* acc = scratch_vector<float>(*state, kSums, shape);
    for (size_t d = 0; d < head_width; ++d) acc[d] = 0.0f;
    for_each_run(keys, [&](const KeyRun<float>& run, size_t index) {
      const size_t stride = run.step * shape.key_stride;
      with_looks_ahead(keys, keys.ahead.v, index, run.count, [&](size_t first, size_t part) {
        Primitives::accumulate(scores + index + first, run.v + first * stride, stride, part,
                               head_width, acc);
      });
    });
    for (size_t d = 0; d < head_width; ++d) out[d] = out[d] * rescale + acc[d];
  }

  static void end(const AttentionShape& shape, AttentionState* state, float* out) {
    end_query(shape, state, out);
  }

  static constexpr AttentionKernel<float> kKernel = {begin, tile, end};
};

template <typename Primitives>
struct Int8Attention {
  static void begin(const AttentionQuery<int8_t>& query, const AttentionShape& shape,
                    AttentionState* state, float* out) {
    begin_query(query, shape, state, out);
    state->content_scale = content_query(query.q, kContent, query, shape, *state);
    if (query.pinned_q != nullptr) {
      state->pinned_scale = content_query(query.pinned_q, kPinned, query, shape, *state);
    }
    if (shape.relative) {
      state->position_scale = quantize_query(query.q, shape.head_width,
                                             scratch_vector<int16_t>(*state, kPosition, shape));
    }
  }

  static void tile(const AttentionQuery<int8_t>& query, const AttentionShape& shape,
                   const KeyTile<int8_t>& keys, AttentionState* state, float* out) {
    const size_t head_width = shape.head_width, count = keys.keys;
    const int16_t* content = scratch_vector<int16_t>(*state, kContent, shape);
    const int16_t* position = scratch_vector<int16_t>(*state, kPosition, shape);
    const int16_t* pinned =
        query.pinned_q == nullptr ? nullptr : scratch_vector<int16_t>(*state, kPinned, shape);
    int32_t dots[kAttentionTile];
    float scales[kAttentionTile], value_scales[kAttentionTile], scores[kAttentionTile];
    RelativeTile<int32_t> relative;
    for_each_run(keys, [&](const KeyRun<int8_t>& run, size_t index) {
      const size_t stride = run.step * shape.key_stride;
      with_looks_ahead(keys, keys.ahead.k, index, run.count, [&](size_t first, size_t part) {
        Primitives::dots(run.pinned ? pinned : content, run.k + first * stride,
                         static_cast<ptrdiff_t>(stride), part, head_width, dots + index + first);
      });
      const float query_scale = run.pinned ? state->pinned_scale : state->content_scale;
      for (size_t j = 0; j < run.count; ++j) {
        const size_t at = j * run.step * shape.key_scale_stride;
        scales[index + j] = query_scale * run.k_scales[at];
        value_scales[index + j] = run.v_scales[at];
      }
      if (shape.relative) relative_run<Primitives>(position, query, shape, run, index, &relative);
    });
    for (size_t j = 0; j < count; ++j) scores[j] = static_cast<float>(dots[j]) * scales[j];
    if (shape.relative) {
      for (size_t j = 0; j < count; ++j) {
        const float term =
            static_cast<float>(relative.dots[j]) * (state->position_scale * relative.scales[j]);
        scores[j] = (scores[j] + term) + relative.bias[j];
      }
    }
    if (shape.relative_keys) {
      for (size_t j = 0; j < count; ++j) scores[j] = scores[j] + relative.key_terms[j];
    }
    add_terms(query, shape, keys, *state, scores);
    const float rescale = add_scores(scores, count, state);

    for (size_t j = 0; j < count; ++j) scores[j] = scores[j] * value_scales[j];
    float largest = absmax_f32(scores, count);
    constexpr float kLargest = std::numeric_limits<float>::max();
    largest = kLargest < largest ? kLargest : largest;
    if (largest < kSmallestAbsmax) {
      for (size_t d = 0; d < head_width; ++d) out[d] = out[d] * rescale;
      return;
    }
    const float inverse = kWeightMax / largest, tile_scale = largest / kWeightMax;
    int16_t weights[kAttentionTile];
    for (size_t j = 0; j < count; ++j) weights[j] = quantize_weight(scores[j], inverse);
    int32_t* acc = scratch_vector<int32_t>(*state, kSums, shape);
    for (size_t d = 0; d < head_width; ++d) acc[d] = 0;
    for_each_run(keys, [&](const KeyRun<int8_t>& run, size_t index) {
      const size_t stride = run.step * shape.key_stride;
      with_looks_ahead(keys, keys.ahead.v, index, run.count, [&](size_t first, size_t part) {
        Primitives::accumulate(weights + index + first, run.v + first * stride, stride, part,
                               head_width, acc);
      });
    });
    for (size_t d = 0; d < head_width; ++d) {
      out[d] = out[d] * rescale + static_cast<float>(acc[d]) * tile_scale;
    }
  }

  static void end(const AttentionShape& shape, AttentionState* state, float* out) {
    end_query(shape, state, out);
  }

  static constexpr AttentionKernel<int8_t> kKernel = {begin, tile, end};

 private:
  /// Quantises q, with the query bias if there is one, to vector `to`; returns its scale.
  static float content_query(const float* q, size_t to, const AttentionQuery<int8_t>& query,
                             const AttentionShape& shape, const AttentionState& state) {
    if (shape.relative) {
      float* biased = scratch_vector<float>(state, kSums, shape);
      add_vectors(q, query.query_bias, shape.head_width, biased);
      q = biased;
    }
    return quantize_query(q, shape.head_width, scratch_vector<int16_t>(state, to, shape));
  }
};

}  // namespace
}  // namespace oxbow
