// The specification of attention: the steps of attention.h, in their order. Loops are shaped so
// that a compiler vectorises them at the baseline of its target; nothing else is tuned.

#include <algorithm>
#include <bit>
#include <limits>

#include "ops/attention/attention.h"
#include "runtime/base/math.h"
#include "runtime/base/quantize.h"

namespace oxbow {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr float kWeightMax = 32767.0f;

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
      const size_t run = std::min(count - index, span->count - offset);
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

template <typename Element>
size_t table_row(const AttentionQuery<Element>& query, const AttentionShape& shape, size_t slot) {
  return std::min(query.slot - slot, shape.distances - 1);
}

template <typename T>
T* scratch_vector(std::byte* scratch, size_t index, size_t head_width) {
  return reinterpret_cast<T*>(scratch + index * round_up(head_width * 4, kTensorAlignment));
}

/// Sum of a[d] * b[d]. One side is int16, which lets compilers use their multiply-and-add of pairs.
int32_t dot_i8(const int16_t* a, const int8_t* b, size_t count) {
  int32_t sum = 0;
  for (size_t d = 0; d < count; ++d) sum += int32_t{a[d]} * int32_t{int16_t{b[d]}};
  return sum;
}

/// sum[d] += w[0] * v[0][d], then w[1] * v[1][d], and so on: `keys` of them. By fours, since that
/// saves loads and stores of sums; for floats the order is that of one after the other.
template <typename Sum, typename Weight, typename Element>
void accumulate(const Weight* w, const Element* v, size_t stride, size_t keys, size_t head_width,
                Sum* sum) {
  size_t j = 0;
  for (; j + 4 <= keys; j += 4) {
    const Sum w0 = w[j], w1 = w[j + 1], w2 = w[j + 2], w3 = w[j + 3];
    const Element* v0 = v + j * stride;
    const Element* v1 = v0 + stride;
    const Element* v2 = v1 + stride;
    const Element* v3 = v2 + stride;
    for (size_t d = 0; d < head_width; ++d) {
      sum[d] = (((sum[d] + w0 * Sum{v0[d]}) + w1 * Sum{v1[d]}) + w2 * Sum{v2[d]}) + w3 * Sum{v3[d]};
    }
  }
  for (; j < keys; ++j) {
    const Sum w0 = w[j];
    const Element* v0 = v + j * stride;
    for (size_t d = 0; d < head_width; ++d) sum[d] += w0 * Sum{v0[d]};
  }
}

/// Clamps before it converts: no cast of a float that does not fit.
int16_t quantize_weight(float w, float inverse) {
  float x = w * inverse;
  x = x > kWeightMax ? kWeightMax : x;
  x = x < -kWeightMax ? -kWeightMax : x;
  x = x == x ? x : 0.0f;
  const uint32_t bits = std::bit_cast<uint32_t>(x + kRoundMagic);
  return static_cast<int16_t>(static_cast<int32_t>(bits - std::bit_cast<uint32_t>(kRoundMagic)));
}

/// Quantises to int8, but keeps the codes in int16 for dot_i8.
float quantize_query(const float* x, size_t count, int16_t* codes) {
  const QuantScale scale = quant_scale(absmax_f32(x, count));
  for (size_t d = 0; d < count; ++d) codes[d] = quantize_value(x[d], scale.inverse);
  return scale.scale;
}

}  // namespace

void attention_f32_f32_f32_ref(const AttentionQuery<float>& query, const KeySpan<float>* spans,
                               size_t span_count, const AttentionShape& shape, std::byte* scratch,
                               float* out) {
  const size_t head_width = shape.head_width;
  float* acc = scratch_vector<float>(scratch, 0, head_width);
  const float* content = query.q;
  if (shape.distances != 0) {
    float* biased = scratch_vector<float>(scratch, 1, head_width);
    for (size_t d = 0; d < head_width; ++d) biased[d] = query.q[d] + query.query_bias[d];
    content = biased;
  }
  std::fill_n(out, head_width, 0.0f);

  RunningSoftmax softmax;
  KeyCursor<float> cursor{spans, spans + span_count};
  float scores[kAttentionTile];
  for (;;) {
    KeyCursor<float> values = cursor;
    const size_t count = cursor.walk(
        kAttentionTile, [&](const KeySpan<float>& span, size_t first, size_t index, size_t run) {
          for (size_t j = 0; j < run; ++j) {
            float s = dot_f32(content, span.k + (first + j) * shape.key_stride, head_width);
            if (shape.distances != 0) {
              const size_t t = table_row(query, shape, span.first_slot + first + j);
              s = (s + dot_f32(query.q, query.table + t * shape.table_stride, head_width)) +
                  query.bias[t * shape.bias_stride];
            }
            scores[index + j] = s * shape.scale;
          }
        });
    if (count == 0) break;
    const float rescale = softmax.add_tile(scores, count);
    std::fill_n(acc, head_width, 0.0f);
    values.walk(count, [&](const KeySpan<float>& span, size_t first, size_t index, size_t run) {
      accumulate(scores + index, span.v + first * shape.key_stride, shape.key_stride, run,
                 head_width, acc);
    });
    for (size_t d = 0; d < head_width; ++d) out[d] = out[d] * rescale + acc[d];
  }
  const float inverse = softmax.inverse_sum();
  for (size_t d = 0; d < head_width; ++d) out[d] = out[d] * inverse;
}

void attention_f32_i8_f32_ref(const AttentionQuery<int8_t>& query, const KeySpan<int8_t>* spans,
                              size_t span_count, const AttentionShape& shape, std::byte* scratch,
                              float* out) {
  const size_t head_width = shape.head_width;
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
  std::fill_n(out, head_width, 0.0f);

  RunningSoftmax softmax;
  KeyCursor<int8_t> cursor{spans, spans + span_count};
  float scores[kAttentionTile];
  int16_t weights[kAttentionTile];
  for (;;) {
    KeyCursor<int8_t> scales = cursor, values = cursor;
    const size_t count = cursor.walk(
        kAttentionTile, [&](const KeySpan<int8_t>& span, size_t first, size_t index, size_t run) {
          for (size_t j = 0; j < run; ++j) {
            const size_t key = first + j;
            const int32_t dot = dot_i8(content, span.k + key * shape.key_stride, head_width);
            const float key_scale = span.k_scales[key * shape.key_scale_stride];
            float s = static_cast<float>(dot) * (content_scale * key_scale);
            if (shape.distances != 0) {
              const size_t t = table_row(query, shape, span.first_slot + key);
              const int32_t table_dot =
                  dot_i8(position, query.table + t * shape.table_stride, head_width);
              const float table_scale = query.table_scales[t * shape.table_scale_stride];
              s = (s + static_cast<float>(table_dot) * (position_scale * table_scale)) +
                  query.bias[t * shape.bias_stride];
            }
            scores[index + j] = s * shape.scale;
          }
        });
    if (count == 0) break;
    const float rescale = softmax.add_tile(scores, count);

    scales.walk(count, [&](const KeySpan<int8_t>& span, size_t first, size_t index, size_t run) {
      for (size_t j = 0; j < run; ++j) {
        scores[index + j] *= span.v_scales[(first + j) * shape.key_scale_stride];
      }
    });
    float largest = absmax_f32(scores, count);
    largest = std::min(largest, std::numeric_limits<float>::max());
    if (largest < kSmallestAbsmax) {
      for (size_t d = 0; d < head_width; ++d) out[d] = out[d] * rescale;
      continue;
    }
    const float inverse = kWeightMax / largest, tile_scale = largest / kWeightMax;
    for (size_t j = 0; j < count; ++j) weights[j] = quantize_weight(scores[j], inverse);
    std::fill_n(acc, head_width, 0);
    values.walk(count, [&](const KeySpan<int8_t>& span, size_t first, size_t index, size_t run) {
      accumulate(weights + index, span.v + first * shape.key_stride, shape.key_stride, run,
                 head_width, acc);
    });
    for (size_t d = 0; d < head_width; ++d) {
      out[d] = out[d] * rescale + static_cast<float>(acc[d]) * tile_scale;
    }
  }
  const float inverse = softmax.inverse_sum();
  for (size_t d = 0; d < head_width; ++d) out[d] = out[d] * inverse;
}

}  // namespace oxbow
