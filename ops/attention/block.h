#pragma once

// A tile for several queries that see the same keys, or the first of them: the steps of generic.h with their
// order, but products with keys and sums of values are small matrix products. An instruction set adds two functions to its
// struct of loops; rows of what belongs to the queries are kBlockStride apart:
//
//   dots_block        dots of the rows with each of x
//   accumulate_block  the sums of each query over the rows; for floats one row after the other
//
// Behind the results for the last row the first may write up to kBlockPadding. What is left are loops over the
// keys of a tile; RowLoops has them for any number of keys, and an instruction set may have its own for whole tiles.

#include "ops/attention/generic.h"

namespace oxbow {
namespace {

/// Two vectors of the widest instruction set.
constexpr size_t kBlockPadding = 32;
constexpr size_t kBlockStride = kAttentionTile + kBlockPadding;

template <typename Element>
using BlockFunction = decltype(AttentionKernel<Element>::block);

template <typename Element>
constexpr AttentionKernel<Element> with_blocks(AttentionKernel<Element> kernel,
                                               BlockFunction<Element> block) {
  kernel.block = block;
  return kernel;
}

/// The first `seen` keys of a tile: itself if that is all.
template <typename Primitives, typename Element>
const KeyTile<Element>& first_keys(const KeyTile<Element>& keys, size_t seen,
                                   KeyTile<Element>* part) {
  if (seen == keys.keys) return keys;
  part->span_count = part->keys = 0;
  while (part->keys < seen) {
    KeySpan<Element>& span = part->spans[part->span_count];
    span = keys.spans[part->span_count++];
    span.count = seen - part->keys < span.count ? seen - part->keys : span.count;
    part->keys += span.count;
  }
  return *part;
}

/// Of one query, whose row of scores these are.
struct RowLoops {
  static float scale_and_max(size_t count, float scale, float floor, float* row) {
    OXB_WIDE_LOOP
    for (size_t j = 0; j < count; ++j) row[j] = row[j] * scale;
    return max_f32(count, floor, [=](size_t j) { return row[j]; });
  }
  static float exp_and_sum(size_t count, float largest, float* row) {
    OXB_WIDE_LOOP
    for (size_t j = 0; j < count; ++j) row[j] = exp_f32(row[j] - largest);
    return sum_f32(count, [=](size_t j) { return row[j]; });
  }
  static float multiply_and_absmax(size_t count, const float* factors, float* row) {
    OXB_WIDE_LOOP
    for (size_t j = 0; j < count; ++j) row[j] = row[j] * factors[j];
    return absmax_f32(row, count);
  }
  static void quantize(size_t count, const float* row, float inverse, int16_t* codes) {
    OXB_WIDE_LOOP
    for (size_t j = 0; j < count; ++j) codes[j] = quantize_weight(row[j], inverse);
  }
};

/// Kinds of terms that do nothing to scores or weights: they say which keys are seen.
constexpr uint32_t kSightOnly = 1u << static_cast<unsigned>(schema::TermKind::KeyMask) |
                                1u << static_cast<unsigned>(schema::TermKind::Groups);

/// From the products with keys to exponentials, as add_terms and add_scores do, in steps over all queries: what a step
/// waits for in one query, it computes in others meanwhile. Rows of `scores` are kBlockStride apart.
template <typename Primitives, typename Element>
void add_block_scores(HeadTask* const* tasks, size_t count, const AttentionShape& shape,
                      const AttentionTerms& terms, const KeyTile<Element>& keys, float* scores,
                      float (&rescale)[kBlockQueries]) {
  const bool plain = (terms.kinds & ~kSightOnly) == 0;
  KeyTile<Element> part;
  const auto tile_of = [&](const HeadTask& task) {
    return TermTile<Element>{task.query, shape, first_keys<Primitives>(keys, task.seen, &part),
                             task.state.scratch};
  };
  float maxima[kBlockQueries], drops[kBlockQueries] = {};
  for (size_t i = 0; i < count; ++i) {
    const HeadTask& task = *tasks[i];
    float* row = scores + i * kBlockStride;
    if (plain) {
      maxima[i] = Primitives::scale_and_max(task.seen, shape.scale, task.state.max, row);
    } else {
      add_terms<Primitives>(tile_of(task), terms, task.state, row);
      maxima[i] = max_f32(task.seen, task.state.max, [=](size_t j) { return row[j]; });
    }
    drops[i] = task.state.max - maxima[i];
  }
  for (size_t i = 0; i < kBlockQueries; ++i) rescale[i] = exp_f32(drops[i]);
  for (size_t i = 0; i < count; ++i) {
    HeadTask& task = *tasks[i];
    float* row = scores + i * kBlockStride;
    const float sum = Primitives::exp_and_sum(task.seen, maxima[i], row);
    task.state.sum = task.state.sum * rescale[i] + sum;
    task.state.max = maxima[i];
    if (plain) continue;
    const TermTile<Element> tile = tile_of(task);
    for_each_term(terms, task.state.terms, [&](const auto& term, auto& of_term) {
      if constexpr (has_weights<Primitives, Element, decltype(term)>) {
        term.template weights<Primitives>(tile, rescale[i], &of_term, row);
      }
    });
  }
}

template <typename Primitives>
void float_block(HeadTask* const* tasks, size_t count, const AttentionShape& shape,
                 const AttentionTerms& terms, const KeyTile<float>& keys) {
  alignas(64) float weights[kBlockQueries * kBlockStride];
  const float* content[kBlockQueries];
  float* acc[kBlockQueries];
  float rescale[kBlockQueries];
  for (size_t i = 0; i < count; ++i) {
    const HeadTask& task = *tasks[i];
    const bool biased = query_bias_of<Primitives>(task.query, shape, terms) != nullptr;
    content[i] = biased ? scratch_vector<float>(task.state.scratch, kContent, shape) : task.query.q;
    acc[i] = scratch_vector<float>(task.state.scratch, kSums, shape);
  }
  for_each_span(keys, [&](const KeySpan<float>& span, size_t index) {
    Primitives::dots_block(content, count, span.k, span.step * shape.key_stride, span.count,
                           shape.head_width, weights + index);
  });
  add_block_scores<Primitives>(tasks, count, shape, terms, keys, weights, rescale);
  // What all of them see; the rest has each for itself.
  size_t common = keys.keys;
  for (size_t i = 0; i < count; ++i) common = tasks[i]->seen < common ? tasks[i]->seen : common;
  const size_t width = shape.value_width;
  for (size_t i = 0; i < count; ++i) {
    for (size_t d = 0; d < width; ++d) acc[i][d] = 0.0f;
  }
  for_each_span(keys, [&](const KeySpan<float>& span, size_t index) {
    const size_t stride = span.step * shape.value_stride;
    const size_t all = index < common ? common - index : 0;
    const size_t shared = all < span.count ? all : span.count;
    if (shared != 0) {
      Primitives::accumulate_block(weights + index, count, span.v, stride, shared, width, acc);
    }
    for (size_t i = 0; i < count; ++i) {
      const size_t rest = tasks[i]->seen > index ? tasks[i]->seen - index : 0;
      const size_t own = rest < span.count ? rest : span.count;
      if (own <= shared) continue;
      Primitives::accumulate(weights + i * kBlockStride + index + shared, span.v + shared * stride,
                             stride, own - shared, width, acc[i]);
    }
  });
  for (size_t i = 0; i < count; ++i) {
    float* out = tasks[i]->out;
    OXB_WIDE_LOOP
    for (size_t d = 0; d < width; ++d) out[d] = out[d] * rescale[i] + acc[i][d];
  }
}

template <typename Primitives>
void int8_block(HeadTask* const* tasks, size_t count, const AttentionShape& shape,
                const AttentionTerms& terms, const KeyTile<int8_t>& keys) {
  alignas(64) int32_t dots[kBlockQueries * kBlockStride];
  alignas(64) float scores[kBlockQueries * kBlockStride];
  alignas(64) int16_t weights[kBlockQueries * kBlockStride];
  alignas(64) float key_scales[kAttentionTile], value_scales[kAttentionTile];
  const int16_t* content[kBlockQueries];
  int32_t* acc[kBlockQueries];
  float rescale[kBlockQueries];
  for (size_t i = 0; i < count; ++i) {
    content[i] = scratch_vector<int16_t>(tasks[i]->state.scratch, kContent, shape);
    acc[i] = scratch_vector<int32_t>(tasks[i]->state.scratch, kSums, shape);
  }
  for_each_span(keys, [&](const KeySpan<int8_t>& span, size_t index) {
    Primitives::dots_block(content, count, span.k, span.step * shape.key_stride, span.count,
                           shape.head_width, dots + index);
    for (size_t j = 0; j < span.count; ++j) {
      const size_t at = j * span.step * shape.scale_stride;
      key_scales[index + j] = span.k_scales[at];
      value_scales[index + j] = span.v_scales[at];
    }
  });
  for (size_t i = 0; i < count; ++i) {
    const float scale = tasks[i]->state.content_scale;
    const int32_t* from = dots + i * kBlockStride;
    float* to = scores + i * kBlockStride;
    // Of keys that it does not see too.
    OXB_WIDE_LOOP
    for (size_t j = 0; j < keys.keys; ++j) {
      to[j] = static_cast<float>(from[j]) * (scale * key_scales[j]);
    }
  }
  add_block_scores<Primitives>(tasks, count, shape, terms, keys, scores, rescale);

  float largest[kBlockQueries] = {}, inverse[kBlockQueries], of_tile[kBlockQueries];
  for (size_t i = 0; i < count; ++i) {
    largest[i] =
        Primitives::multiply_and_absmax(tasks[i]->seen, value_scales, scores + i * kBlockStride);
  }
  for (size_t i = 0; i < kBlockQueries; ++i) {
    constexpr float kLargest = std::numeric_limits<float>::max();
    const float x = kLargest < largest[i] ? kLargest : largest[i];
    // Without weights there is nothing to add.
    inverse[i] = x < kSmallestAbsmax ? 0.0f : kWeightMax / x;
    of_tile[i] = x < kSmallestAbsmax ? 0.0f : x / kWeightMax;
  }
  for (size_t i = 0; i < count; ++i) {
    int16_t* to = weights + i * kBlockStride;
    Primitives::quantize(tasks[i]->seen, scores + i * kBlockStride, inverse[i], to);
    // Keys that it does not see have no weight.
    for (size_t j = tasks[i]->seen; j < kBlockStride; ++j) to[j] = 0;
  }
  const size_t width = shape.value_width;
  for (size_t i = 0; i < count; ++i) {
    for (size_t d = 0; d < width; ++d) acc[i][d] = 0;
  }
  for_each_span(keys, [&](const KeySpan<int8_t>& span, size_t index) {
    Primitives::accumulate_block(weights + index, count, span.v, span.step * shape.value_stride,
                                 span.count, width, acc);
  });
  for (size_t i = 0; i < count; ++i) {
    float* out = tasks[i]->out;
    if (of_tile[i] == 0.0f) {
      for (size_t d = 0; d < width; ++d) out[d] = out[d] * rescale[i];
      continue;
    }
    OXB_WIDE_LOOP
    for (size_t d = 0; d < width; ++d) {
      out[d] = out[d] * rescale[i] + static_cast<float>(acc[i][d]) * of_tile[i];
    }
  }
}

}  // namespace
}  // namespace oxbow
