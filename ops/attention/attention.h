#pragma once

// Attention of one query head over any number of keys, in memory that does not grow with them.
//
//   score(i, j) = scale * ((q_i + u) . k_j + q_i . R[t] + B[t])     t = min(distance(i, j), D - 1)
//   score(i, j) = scale * (q_i . k_j)                               without the relative term
//   out_i       = sum_j softmax_j(score(i, j)) v_j
//
// Three parts meet here, and a new kind of attention changes one of them:
//   sources      where keys lie: rings, then this run's rows. The op turns them into spans.
//   pattern      which keys a query sees: picks and clips spans. Today: causal, all slots up to its
//                own.
//   score terms  what is added to q . k. Today: the relative term.
//
// All sources together form one sequence of slots, oldest first, and distance(i, j) is the number
// of slots from key j to the query's own. A ring lies in memory in one or two pieces; since
// everything below is defined on the sequence of keys, the pieces cannot be told from the result.
//
// The order of the arithmetic, which every variant of the int8 kernel follows to the bit. sum, max,
// dot, exp, quantise are sum_f32, max_f32, dot_f32, exp_f32 (math.h) and quantize_group
// (quantize.h); a tile is the next 64 keys of the spans taken one after the other, the last tile
// what remains.
//
//   m = -inf, l = 0, out[d] = 0
//   a, sa = quantise(q[d] + u[d]);  b, sb = quantise(q[d])             u, b: relative term only
//   for each tile, with its keys numbered j = 0, 1, ... from the tile's first:
//     s_j    = float(a . k_j) * (sa * sk_j)                                  sk: scale of the key
//     s_j    = (s_j + float(b . R_t) * (sb * sR_t)) + B_t                    relative term only
//     s_j    = s_j * scale
//     m'     = max(m, s_0, s_1, ...)
//     c      = exp(m - m');  p_j = exp(s_j - m');  m = m'
//     l      = l * c + sum(p_j)
//     w_j    = p_j * sv_j                                                    sv: scale of the value
//     x      = max(|w_j|); x < 2^-100: the tile adds nothing; inf counts as the largest float
//     W_j    = clamp(round(w_j * (32767 / x)), -32767, 32767)      int16, ties to even, NaN: 0
//     acc[d] = sum of W_j * v_j[d]                                 int32: 64 * 32767 * 128 < 2^31
//     out[d] = out[d] * c + float(acc[d]) * (x / 32767)
//   r = 1 / l (0 when there were no keys);  out[d] = out[d] * r
//
// A scale per tile keeps 16 bits for the weights of a tile however small they are beside those of
// another, so that a tail of thousands of keys with small weights survives.
//
// The float kernel is the same with a . k_j = dot(q + u, k_j), b . R_t = dot(q, R_t), all scales 1,
// acc[d] = ((0 + p_0 * v_0[d]) + p_1 * v_1[d]) + ... in float and out[d] = out[d] * c + acc[d].
//
// Numbers that are not finite never lead to undefined behaviour. Mostly they lead to results that are
// not finite either; where one is quantised it counts as quantize.h says.

#include <cstddef>
#include <cstdint>

#include "ops/quantize/quantize.h"
#include "runtime/base/checked.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

inline constexpr size_t kAttentionTile = 64;
inline constexpr size_t kMaxAttentionSources = 8;
/// 2^16 * 127 * 128 < 2^31: a product of two int8 heads fits int32 whatever the bytes in the file
/// are.
inline constexpr size_t kMaxHeadWidth = 1 << 16;

/// Keys that lie at equal distances in memory, with their values; of one key/value head. Strides
/// are in AttentionShape. Element is float or int8_t; float has no scales.
template <typename Element>
struct KeySpan {
  const Element* k = nullptr;
  const Element* v = nullptr;
  const float* k_scales = nullptr;
  const float* v_scales = nullptr;
  size_t count = 0;
  /// Slot of the first key in the sequence of all sources.
  size_t first_slot = 0;
};

/// One query row of one head. What belongs to the relative term is null without it.
template <typename Element>
struct AttentionQuery {
  const float* q = nullptr;
  /// The query's own slot; no key of a span is newer.
  size_t slot = 0;
  const float* query_bias = nullptr;
  const Element* table = nullptr;
  const float* table_scales = nullptr;
  const float* bias = nullptr;
};

/// Common to all calls of a step. Strides are in elements, from one row to the next.
struct AttentionShape {
  size_t head_width = 0;
  float scale = 1.0f;
  size_t key_stride = 0;
  size_t key_scale_stride = 0;
  /// Rows of table and bias; 0: no relative term.
  size_t distances = 0;
  size_t table_stride = 0;
  size_t table_scale_stride = 0;
  size_t bias_stride = 0;
};

/// Computes out[head_width] for one query. `scratch` has attention_scratch_bytes(), aligned to 64.
template <typename Element>
using AttentionKernel = void (*)(const AttentionQuery<Element>& query,
                                 const KeySpan<Element>* spans, size_t span_count,
                                 const AttentionShape& shape, std::byte* scratch, float* out);

/// Room for three vectors of four-byte elements, each aligned to 64.
constexpr size_t attention_scratch_bytes(size_t head_width) {
  return 3 * round_up(head_width * 4, kTensorAlignment);
}

#define OXB_KERNEL(element, isa, name)                                           \
  void name(const AttentionQuery<element>& query, const KeySpan<element>* spans, \
            size_t span_count, const AttentionShape& shape, std::byte* scratch, float* out);
#include "ops/attention/kernels.inc"
#undef OXB_KERNEL

struct AttentionParams {
  Tensor q, out, table, bias, query_bias;
  Tensor k[kMaxAttentionSources], v[kMaxAttentionSources];
  size_t sources = 0;
  size_t heads = 0;
  size_t kv_heads = 0;
  AttentionShape shape;
  /// The one for the type of the keys.
  AttentionKernel<float> f32_kernel = nullptr;
  AttentionKernel<int8_t> i8_kernel = nullptr;
  /// For rows of an I8 output.
  QuantizeKernel quantize = nullptr;
};

/// Inputs, outputs and options as schema::AttentionOptions tells.
Status bind_attention(BindContext& context, RunFunction* run);

}  // namespace oxbow
