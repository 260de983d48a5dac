#pragma once

// A tile for several queries that see the same keys, or the first of them: the steps of generic.h with their
// order, but products with keys and sums of values are small matrix products. An instruction set adds two functions to its
// struct of loops; rows of what belongs to the queries are kBlockStride apart:
//
//   dots_block        dots of the rows with each of x
//   accumulate_block  the sums of each query over the rows; for floats one row after the other
//
// Behind the results for the last row the first may write as many as a vector has.

#include "ops/attention/generic.h"

namespace oxbow {
namespace {

constexpr size_t kBlockStride = kAttentionTile + 16;

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
  // What all of them see; the rest has each for itself.
  size_t common = keys.keys;
  KeyTile<float> part;
  for (size_t i = 0; i < count; ++i) {
    HeadTask& task = *tasks[i];
    common = task.seen < common ? task.seen : common;
    float* scores = weights + i * kBlockStride;
    const TermTile<float> tile{task.query, shape, first_keys<Primitives>(keys, task.seen, &part),
                               task.state.scratch};
    add_terms<Primitives>(tile, terms, task.state, scores);
    rescale[i] = add_scores<Primitives>(tile, terms, &task.state, scores);
  }
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
    for (size_t d = 0; d < width; ++d) out[d] = out[d] * rescale[i] + acc[i][d];
  }
}

template <typename Primitives>
void int8_block(HeadTask* const* tasks, size_t count, const AttentionShape& shape,
                const AttentionTerms& terms, const KeyTile<int8_t>& keys) {
  alignas(64) int32_t dots[kBlockQueries * kBlockStride];
  alignas(64) int16_t weights[kBlockQueries * kBlockStride];
  float key_scales[kAttentionTile], value_scales[kAttentionTile], scores[kAttentionTile];
  const int16_t* content[kBlockQueries];
  int32_t* acc[kBlockQueries];
  Int8Weights scales[kBlockQueries];
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
  KeyTile<int8_t> part;
  for (size_t i = 0; i < count; ++i) {
    HeadTask& task = *tasks[i];
    const int32_t* of_query = dots + i * kBlockStride;
    for (size_t j = 0; j < task.seen; ++j) {
      scores[j] = static_cast<float>(of_query[j]) * (task.state.content_scale * key_scales[j]);
    }
    int16_t* to = weights + i * kBlockStride;
    const TermTile<int8_t> tile{task.query, shape, first_keys<Primitives>(keys, task.seen, &part),
                                task.state.scratch};
    scales[i] = weigh_keys<Primitives>(tile, terms, value_scales, &task.state, scores, to);
    // Keys that it does not see have no weight; without any, there is nothing to add.
    for (size_t j = scales[i].of_tile == 0.0f ? 0 : task.seen; j < kBlockStride; ++j) to[j] = 0;
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
    const float of_tile = scales[i].of_tile, of_rest = scales[i].of_rest;
    if (of_tile == 0.0f) {
      for (size_t d = 0; d < width; ++d) out[d] = out[d] * of_rest;
      continue;
    }
    for (size_t d = 0; d < width; ++d) {
      out[d] = out[d] * of_rest + static_cast<float>(acc[i][d]) * of_tile;
    }
  }
}

}  // namespace
}  // namespace oxbow
