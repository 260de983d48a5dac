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

inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/// Walks the keys of all spans. A copy of it walks the same keys again.
template <typename Element>
struct KeyCursor {
  const KeySpan<Element>* span;
  const KeySpan<Element>* end;
  size_t offset = 0;

  /// Passes `count` keys, or what is left of them, to visit(span, first, index, run) in runs of
  /// keys of one span: its keys [first, first + run), which are keys [index, index + run) of this
  /// walk. Returns how many.
  template <typename Visit>
  size_t walk(size_t count, const Visit& visit) {
    size_t index = 0;
    while (index < count && span != end) {
      const size_t run = smaller(count - index, span->count - offset);
      if (run != 0) visit(*span, offset, index, run);
      index += run;
      offset += run;
      if (offset == span->count) {
        ++span;
        offset = 0;
      }
    }
    return index;
  }
};

/// Running maximum and sum of a softmax that sees its scores tile by tile.
struct RunningSoftmax {
  float max = kMinusInfinity;
  float sum = 0.0f;

  /// Turns the scores into exponentials relative to the new maximum; returns the factor that brings
  /// what was accumulated under the old one to the new.
  float add_tile(float* scores, size_t count) {
    const float new_max = max_f32(count, max, [=](size_t j) { return scores[j]; });
    const float rescale = exp_f32(max - new_max);
    for (size_t j = 0; j < count; ++j) scores[j] = exp_f32(scores[j] - new_max);
    sum = sum * rescale + sum_f32(count, [=](size_t j) { return scores[j]; });
    max = new_max;
    return rescale;
  }

  float inverse_sum() const { return sum == 0.0f ? 0.0f : 1.0f / sum; }
};

/// What one tile needs of the relative term: a value for each of its keys.
template <typename Dot>
struct RelativeTile {
  Dot dots[kAttentionTile];
  /// int8 only.
  float scales[kAttentionTile];
  float bias[kAttentionTile];
};

/// Fills [index, index + run) for keys whose first has this slot. Distances beyond the table share
/// its last row; then rows follow each other down to the nearest.
template <typename Primitives, typename X, typename Element, typename Dot>
void relative_run(const X* x, const AttentionQuery<Element>& query, const AttentionShape& shape,
                  size_t slot, size_t index, size_t run, RelativeTile<Dot>* tile) {
  const size_t distance = query.slot - slot, last = shape.distances - 1;
  const size_t clipped = distance > last ? smaller(run, distance - last) : 0;
  const auto stride = static_cast<ptrdiff_t>(shape.table_stride);
  if (clipped != 0) {
    Primitives::dots(x, query.table + last * shape.table_stride, 0, 1, shape.head_width,
                     tile->dots + index);
    for (size_t j = 1; j < clipped; ++j) tile->dots[index + j] = tile->dots[index];
  }
  if (clipped != run) {
    Primitives::dots(x, query.table + (distance - clipped) * shape.table_stride, -stride,
                     run - clipped, shape.head_width, tile->dots + index + clipped);
  }
  for (size_t j = 0; j < run; ++j) {
    const size_t t = smaller(distance - j, last);
    tile->bias[index + j] = query.bias[t * shape.bias_stride];
    if constexpr (sizeof(Element) == 1) {
      tile->scales[index + j] = query.table_scales[t * shape.table_scale_stride];
    }
  }
}

/// Vector `index` of the three that attention_scratch_bytes() makes room for.
template <typename T>
T* scratch_vector(std::byte* scratch, size_t index, size_t head_width) {
  const size_t bytes =
      (head_width * 4 + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  return reinterpret_cast<T*>(scratch + index * bytes);
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
void attention_f32(const AttentionQuery<float>& query, const KeySpan<float>* spans,
                   size_t span_count, const AttentionShape& shape, std::byte* scratch, float* out) {
  const size_t head_width = shape.head_width;
  const auto stride = static_cast<ptrdiff_t>(shape.key_stride);
  float* acc = scratch_vector<float>(scratch, 0, head_width);
  const float* content = query.q;
  if (shape.distances != 0) {
    float* biased = scratch_vector<float>(scratch, 1, head_width);
    for (size_t d = 0; d < head_width; ++d) biased[d] = query.q[d] + query.query_bias[d];
    content = biased;
  }
  for (size_t d = 0; d < head_width; ++d) out[d] = 0.0f;

  RunningSoftmax softmax;
  KeyCursor<float> cursor{spans, spans + span_count};
  float scores[kAttentionTile];
  RelativeTile<float> relative;
  for (;;) {
    KeyCursor<float> values = cursor;
    const size_t count = cursor.walk(
        kAttentionTile, [&](const KeySpan<float>& span, size_t first, size_t index, size_t run) {
          Primitives::dots(content, span.k + first * shape.key_stride, stride, run, head_width,
                           scores + index);
          if (shape.distances != 0) {
            relative_run<Primitives>(query.q, query, shape, span.first_slot + first, index, run,
                                     &relative);
          }
        });
    if (count == 0) break;
    if (shape.distances != 0) {
      for (size_t j = 0; j < count; ++j) {
        scores[j] = (scores[j] + relative.dots[j]) + relative.bias[j];
      }
    }
    for (size_t j = 0; j < count; ++j) scores[j] = scores[j] * shape.scale;
    const float rescale = softmax.add_tile(scores, count);
    for (size_t d = 0; d < head_width; ++d) acc[d] = 0.0f;
    values.walk(count, [&](const KeySpan<float>& span, size_t first, size_t index, size_t run) {
      Primitives::accumulate(scores + index, span.v + first * shape.key_stride, shape.key_stride,
                             run, head_width, acc);
    });
    for (size_t d = 0; d < head_width; ++d) out[d] = out[d] * rescale + acc[d];
  }
  const float inverse = softmax.inverse_sum();
  for (size_t d = 0; d < head_width; ++d) out[d] = out[d] * inverse;
}

template <typename Primitives>
void attention_i8(const AttentionQuery<int8_t>& query, const KeySpan<int8_t>* spans,
                  size_t span_count, const AttentionShape& shape, std::byte* scratch, float* out) {
  const size_t head_width = shape.head_width;
  const auto stride = static_cast<ptrdiff_t>(shape.key_stride);
  int16_t* content = scratch_vector<int16_t>(scratch, 1, head_width);
  int16_t* position = scratch_vector<int16_t>(scratch, 2, head_width);
  float content_scale = 0.0f, position_scale = 0.0f;
  if (shape.distances != 0) {
    float* biased = scratch_vector<float>(scratch, 0, head_width);
    for (size_t d = 0; d < head_width; ++d) biased[d] = query.q[d] + query.query_bias[d];
    content_scale = quantize_query(biased, head_width, content);
    position_scale = quantize_query(query.q, head_width, position);
  } else {
    content_scale = quantize_query(query.q, head_width, content);
  }
  int32_t* acc = scratch_vector<int32_t>(scratch, 0, head_width);
  for (size_t d = 0; d < head_width; ++d) out[d] = 0.0f;

  RunningSoftmax softmax;
  KeyCursor<int8_t> cursor{spans, spans + span_count};
  int32_t dots[kAttentionTile];
  float key_scales[kAttentionTile], value_scales[kAttentionTile], scores[kAttentionTile];
  int16_t weights[kAttentionTile];
  RelativeTile<int32_t> relative;
  for (;;) {
    KeyCursor<int8_t> values = cursor;
    const size_t count = cursor.walk(
        kAttentionTile, [&](const KeySpan<int8_t>& span, size_t first, size_t index, size_t run) {
          Primitives::dots(content, span.k + first * shape.key_stride, stride, run, head_width,
                           dots + index);
          for (size_t j = 0; j < run; ++j) {
            const size_t at = (first + j) * shape.key_scale_stride;
            key_scales[index + j] = span.k_scales[at];
            value_scales[index + j] = span.v_scales[at];
          }
          if (shape.distances != 0) {
            relative_run<Primitives>(position, query, shape, span.first_slot + first, index, run,
                                     &relative);
          }
        });
    if (count == 0) break;
    for (size_t j = 0; j < count; ++j) {
      scores[j] = static_cast<float>(dots[j]) * (content_scale * key_scales[j]);
    }
    if (shape.distances != 0) {
      for (size_t j = 0; j < count; ++j) {
        const float term =
            static_cast<float>(relative.dots[j]) * (position_scale * relative.scales[j]);
        scores[j] = (scores[j] + term) + relative.bias[j];
      }
    }
    for (size_t j = 0; j < count; ++j) scores[j] = scores[j] * shape.scale;
    const float rescale = softmax.add_tile(scores, count);

    for (size_t j = 0; j < count; ++j) scores[j] = scores[j] * value_scales[j];
    float largest = absmax_f32(scores, count);
    constexpr float kLargest = std::numeric_limits<float>::max();
    largest = kLargest < largest ? kLargest : largest;
    if (largest < kSmallestAbsmax) {
      for (size_t d = 0; d < head_width; ++d) out[d] = out[d] * rescale;
      continue;
    }
    const float inverse = kWeightMax / largest, tile_scale = largest / kWeightMax;
    for (size_t j = 0; j < count; ++j) weights[j] = quantize_weight(scores[j], inverse);
    for (size_t d = 0; d < head_width; ++d) acc[d] = 0;
    values.walk(count, [&](const KeySpan<int8_t>& span, size_t first, size_t index, size_t run) {
      Primitives::accumulate(weights + index, span.v + first * shape.key_stride, shape.key_stride,
                             run, head_width, acc);
    });
    for (size_t d = 0; d < head_width; ++d) {
      out[d] = out[d] * rescale + static_cast<float>(acc[d]) * tile_scale;
    }
  }
  const float inverse = softmax.inverse_sum();
  for (size_t d = 0; d < head_width; ++d) out[d] = out[d] * inverse;
}

}  // namespace
}  // namespace oxbow
