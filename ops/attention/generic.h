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
#include <type_traits>

#include "ops/attention/attention.h"
#include "runtime/base/math.h"
#include "runtime/base/quantize.h"

namespace oxbow {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr float kWeightMax = 32767.0f;

/// Keys that are computed between two looks ahead, and how much is asked for at once.
constexpr size_t kKeysAtOnce = 16;

/// Asks for the part of the rows ahead that falls to keys [begin, end) of a tile. Inline, since compilers take a
/// function that does nothing else for one without effect, and leave its calls out.
template <typename Element>
[[gnu::always_inline]] inline void ask_ahead(const RowsAhead<Element>& ahead, size_t begin,
                                             size_t end) {
  size_t line = ahead.first + ahead.count * begin / kAttentionTile;
  const size_t last = ahead.first + ahead.count * end / kAttentionTile;
  const auto* row =
      reinterpret_cast<const char*>(ahead.rows) + line / ahead.row_lines * ahead.stride;
  size_t at = line % ahead.row_lines;
  while (line < last) {
    const size_t rest = ahead.row_lines - at, count = last - line < rest ? last - line : rest;
    for (size_t i = at; i < at + count; ++i) __builtin_prefetch(row + i * kCacheLine);
    line += count;
    row += ahead.stride;
    at = 0;
  }
}

/// Calls body(first, count) for the keys of a span, a few at a time, with looks ahead before each.
template <typename Element, typename Body>
[[gnu::always_inline]] inline void with_looks_ahead(const RowsAhead<Element>& ahead, size_t index,
                                                    size_t count, const Body& body) {
  if (ahead.rows == nullptr) return body(size_t{0}, count);
  for (size_t j = 0; j < count; j += kKeysAtOnce) {
    const size_t part = count - j < kKeysAtOnce ? count - j : kKeysAtOnce;
    ask_ahead(ahead, index + j, index + j + part);
    body(j, part);
  }
}

/// The sum of the values of a head that is narrower than a vector.
[[maybe_unused]] inline void accumulate_narrow(const int16_t* weights, const int8_t* rows,
                                               size_t stride, size_t count, size_t head_width,
                                               int32_t* acc) {
  for (size_t j = 0; j < count; ++j) {
    for (size_t d = 0; d < head_width; ++d) {
      acc[d] += int32_t{weights[j]} * int32_t{rows[j * stride + d]};
    }
  }
}

// Whether a term has a say at a place in the arithmetic: by the function's name, so that a wrong signature is
// an error and not silence.

template <typename Primitives, typename Element, typename Term>
inline constexpr bool has_begin = requires {
  &std::remove_cvref_t<Term>::template begin<Primitives, Element>;
};
template <typename Primitives, typename Element, typename Term>
inline constexpr bool has_before_scale = requires {
  &std::remove_cvref_t<Term>::template before_scale<Primitives, Element>;
};
template <typename Primitives, typename Element, typename Term>
inline constexpr bool has_after_scale = requires {
  &std::remove_cvref_t<Term>::template after_scale<Primitives, Element>;
};
template <typename Primitives, typename Element, typename Term>
inline constexpr bool has_weights = requires {
  &std::remove_cvref_t<Term>::template weights<Primitives, Element>;
};

/// What is added to q in the products with keys, or null.
template <typename Primitives>
const float* query_bias_of(const AttentionQuery& query, const AttentionShape& shape,
                           const AttentionTerms& terms) {
  const float* bias = nullptr;
  for_each_term(terms, [&](const auto& term) {
    if constexpr (requires { term.template query_bias<Primitives>(query, shape); }) {
      bias = term.template query_bias<Primitives>(query, shape);
    }
  });
  return bias;
}

/// The part of begin that both types share.
template <typename Primitives, typename Element>
void begin_query(const AttentionQuery& query, const AttentionShape& shape,
                 const AttentionTerms& terms, AttentionState* state, float* out) {
  state->max = kMinusInfinity;
  state->sum = 0.0f;
  for_each_term(terms, state->terms, [&](const auto& term, auto& of_term) {
    if constexpr (has_begin<Primitives, Element, decltype(term)>) {
      term.template begin<Primitives, Element>(query, shape, state->scratch, &of_term);
    }
  });
  for (size_t d = 0; d < shape.value_width; ++d) out[d] = 0.0f;
}

// What needs none of the primitives is called, once for a tile: kernels that have the same code there share it.

template <typename Primitives, typename Element>
[[gnu::noinline]] void add_terms_after_scale(const TermTile<Element>& tile,
                                             const AttentionTerms& terms,
                                             const AttentionState& state, float* scores) {
  OXB_WIDE_LOOP
  for (size_t j = 0; j < tile.keys.keys; ++j) scores[j] = scores[j] * tile.shape.scale;
  for_each_term(terms, state.terms, [&](const auto& term, const auto& of_term) {
    if constexpr (has_after_scale<Primitives, Element, decltype(term)>) {
      term.template after_scale<Primitives>(tile, of_term, scores);
    }
  });
}

/// From the products with keys to scores.
template <typename Primitives, typename Element>
void add_terms(const TermTile<Element>& tile, const AttentionTerms& terms,
               const AttentionState& state, float* scores) {
  for_each_term(terms, state.terms, [&](const auto& term, const auto& of_term) {
    if constexpr (has_before_scale<Primitives, Element, decltype(term)>) {
      term.template before_scale<Primitives>(tile, of_term, scores);
    }
  });
  add_terms_after_scale<Primitives>(tile, terms, state, scores);
}

/// From scores to exponentials relative to the new maximum. Returns the factor that brings what was accumulated under
/// the old one to the new.
[[gnu::noinline]] inline float take_exponentials(size_t count, AttentionState* state,
                                                 float* scores) {
  const float new_max = max_f32(count, state->max, [=](size_t j) { return scores[j]; });
  const float rescale = exp_f32(state->max - new_max);
  OXB_WIDE_LOOP
  for (size_t j = 0; j < count; ++j) scores[j] = exp_f32(scores[j] - new_max);
  state->sum = state->sum * rescale + sum_f32(count, [=](size_t j) { return scores[j]; });
  state->max = new_max;
  return rescale;
}

/// From scores to weights; returns the same.
template <typename Primitives, typename Element>
float add_scores(const TermTile<Element>& tile, const AttentionTerms& terms, AttentionState* state,
                 float* scores) {
  const float rescale = take_exponentials(tile.keys.keys, state, scores);
  for_each_term(terms, state->terms, [&](const auto& term, auto& of_term) {
    if constexpr (has_weights<Primitives, Element, decltype(term)>) {
      term.template weights<Primitives>(tile, rescale, &of_term, scores);
    }
  });
  return rescale;
}

template <typename Primitives>
void end_query(const AttentionShape& shape, const AttentionTerms& terms, AttentionState* state,
               float* out) {
  for_each_term(terms, state->terms, [&](const auto& term, const auto& of_term) {
    if constexpr (requires { term.template divisor<Primitives>(of_term, 0.0f); }) {
      state->sum = term.template divisor<Primitives>(of_term, state->sum);
    }
  });
  const float inverse = state->sum == 0.0f ? 0.0f : 1.0f / state->sum;
  for (size_t d = 0; d < shape.value_width; ++d) out[d] = out[d] * inverse;
}

inline void add_vectors(const float* a, const float* b, size_t count, float* sum) {
  for (size_t d = 0; d < count; ++d) sum[d] = a[d] + b[d];
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

/// What the sums of values are multiplied by: those of a tile, 0 if it adds nothing, and those before.
struct Int8Weights {
  float of_tile;
  float of_rest;
};

/// From float weights, which are used up, to int16 ones with the scales of the values in them.
[[gnu::noinline]] inline Int8Weights quantize_weights(size_t count, const float* value_scales,
                                                      float rescale, float* scores,
                                                      int16_t* weights) {
  OXB_WIDE_LOOP
  for (size_t j = 0; j < count; ++j) scores[j] = scores[j] * value_scales[j];
  float largest = absmax_f32(scores, count);
  constexpr float kLargest = std::numeric_limits<float>::max();
  largest = kLargest < largest ? kLargest : largest;
  if (largest < kSmallestAbsmax) return {0.0f, rescale};
  const float inverse = kWeightMax / largest;
  OXB_WIDE_LOOP
  for (size_t j = 0; j < count; ++j) weights[j] = quantize_weight(scores[j], inverse);
  return {largest / kWeightMax, rescale};
}

/// From the products with keys to int16 weights. `scores` are used up.
template <typename Primitives>
Int8Weights weigh_keys(const TermTile<int8_t>& tile, const AttentionTerms& terms,
                       const float* value_scales, AttentionState* state, float* scores,
                       int16_t* weights) {
  add_terms<Primitives>(tile, terms, *state, scores);
  const float rescale = add_scores<Primitives>(tile, terms, state, scores);
  return quantize_weights(tile.keys.keys, value_scales, rescale, scores, weights);
}

template <typename Primitives>
struct FloatAttention {
  static void begin(const AttentionQuery& query, const AttentionShape& shape,
                    const AttentionTerms& terms, AttentionState* state, float* out) {
    begin_query<Primitives, float>(query, shape, terms, state, out);
    const float* bias = query_bias_of<Primitives>(query, shape, terms);
    if (bias == nullptr) return;
    add_vectors(query.q, bias, shape.head_width,
                scratch_vector<float>(state->scratch, kContent, shape));
    if (query.pinned_q == nullptr) return;
    add_vectors(query.pinned_q, bias, shape.head_width,
                scratch_vector<float>(state->scratch, kPinned, shape));
  }

  static void tile(const AttentionQuery& query, const AttentionShape& shape,
                   const AttentionTerms& terms, const KeyTile<float>& keys, AttentionState* state,
                   float* out) {
    const bool biased = query_bias_of<Primitives>(query, shape, terms) != nullptr;
    const float* content =
        biased ? scratch_vector<float>(state->scratch, kContent, shape) : query.q;
    const float* pinned = biased && query.pinned_q != nullptr
                              ? scratch_vector<float>(state->scratch, kPinned, shape)
                              : query.pinned_q;
    float scores[kAttentionTile];
    // Looks ahead for float keys cost more time than they save: what is read here is enough work for memory.
    for_each_span(keys, [&](const KeySpan<float>& span, size_t index) {
      Primitives::dots(span.pinned ? pinned : content, span.k,
                       static_cast<ptrdiff_t>(span.step * shape.key_stride), span.count,
                       shape.head_width, scores + index);
    });
    const TermTile<float> of_terms{query, shape, keys, state->scratch};
    add_terms<Primitives>(of_terms, terms, *state, scores);
    const float rescale = add_scores<Primitives>(of_terms, terms, state, scores);

    const size_t width = shape.value_width;
    float* acc = scratch_vector<float>(state->scratch, kSums, shape);
    for (size_t d = 0; d < width; ++d) acc[d] = 0.0f;
    for_each_span(keys, [&](const KeySpan<float>& span, size_t index) {
      const size_t stride = span.step * shape.value_stride;
      with_looks_ahead(keys.values_ahead, index, span.count, [&](size_t first, size_t part) {
        Primitives::accumulate(scores + index + first, span.v + first * stride, stride, part, width,
                               acc);
      });
    });
    OXB_WIDE_LOOP
    for (size_t d = 0; d < width; ++d) out[d] = out[d] * rescale + acc[d];
  }

  static constexpr AttentionKernel<float> kKernel = {begin, tile, end_query<Primitives>, nullptr};
};

template <typename Primitives>
struct Int8Attention {
  static void begin(const AttentionQuery& query, const AttentionShape& shape,
                    const AttentionTerms& terms, AttentionState* state, float* out) {
    begin_query<Primitives, int8_t>(query, shape, terms, state, out);
    const float* bias = query_bias_of<Primitives>(query, shape, terms);
    state->content_scale = content_query(query.q, bias, kContent, shape, *state);
    if (query.pinned_q != nullptr) {
      state->pinned_scale = content_query(query.pinned_q, bias, kPinned, shape, *state);
    }
  }

  static void tile(const AttentionQuery& query, const AttentionShape& shape,
                   const AttentionTerms& terms, const KeyTile<int8_t>& keys, AttentionState* state,
                   float* out) {
    const size_t count = keys.keys;
    const int16_t* content = scratch_vector<int16_t>(state->scratch, kContent, shape);
    const int16_t* pinned = query.pinned_q == nullptr
                                ? nullptr
                                : scratch_vector<int16_t>(state->scratch, kPinned, shape);
    int32_t dots[kAttentionTile];
    float scales[kAttentionTile], value_scales[kAttentionTile], scores[kAttentionTile];
    for_each_span(keys, [&](const KeySpan<int8_t>& span, size_t index) {
      const size_t stride = span.step * shape.key_stride;
      with_looks_ahead(keys.keys_ahead, index, span.count, [&](size_t first, size_t part) {
        Primitives::dots(span.pinned ? pinned : content, span.k + first * stride,
                         static_cast<ptrdiff_t>(stride), part, shape.head_width,
                         dots + index + first);
      });
      const float query_scale = span.pinned ? state->pinned_scale : state->content_scale;
      OXB_WIDE_LOOP
      for (size_t j = 0; j < span.count; ++j) {
        const size_t at = j * span.step * shape.scale_stride;
        scales[index + j] = query_scale * span.k_scales[at];
        value_scales[index + j] = span.v_scales[at];
      }
    });
    OXB_WIDE_LOOP
    for (size_t j = 0; j < count; ++j) scores[j] = static_cast<float>(dots[j]) * scales[j];
    const TermTile<int8_t> of_terms{query, shape, keys, state->scratch};
    int16_t weights[kAttentionTile];
    const Int8Weights scale =
        weigh_keys<Primitives>(of_terms, terms, value_scales, state, scores, weights);
    const size_t width = shape.value_width;
    if (scale.of_tile == 0.0f) {
      for (size_t d = 0; d < width; ++d) out[d] = out[d] * scale.of_rest;
      return;
    }
    int32_t* acc = scratch_vector<int32_t>(state->scratch, kSums, shape);
    for (size_t d = 0; d < width; ++d) acc[d] = 0;
    for_each_span(keys, [&](const KeySpan<int8_t>& span, size_t index) {
      const size_t stride = span.step * shape.value_stride;
      with_looks_ahead(keys.values_ahead, index, span.count, [&](size_t first, size_t part) {
        Primitives::accumulate(weights + index + first, span.v + first * stride, stride, part,
                               width, acc);
      });
    });
    OXB_WIDE_LOOP
    for (size_t d = 0; d < width; ++d) {
      out[d] = out[d] * scale.of_rest + static_cast<float>(acc[d]) * scale.of_tile;
    }
  }

  static constexpr AttentionKernel<int8_t> kKernel = {begin, tile, end_query<Primitives>, nullptr};

 private:
  /// Quantises q + bias, if there is one, to vector `to`; returns its scale.
  static float content_query(const float* q, const float* bias, AttentionVector to,
                             const AttentionShape& shape, const AttentionState& state) {
    if (bias != nullptr) {
      float* biased = scratch_vector<float>(state.scratch, kSums, shape);
      add_vectors(q, bias, shape.head_width, biased);
      q = biased;
    }
    return quantize_query<Primitives>(q, shape.head_width,
                                      scratch_vector<int16_t>(state.scratch, to, shape));
  }
};

}  // namespace
}  // namespace oxbow
