#pragma once

// Attention of one query head over any number of keys, in memory that does not grow with them.
//
//   score(i, j) = scale * ((q_i + u) . k_j + q_i . R[t] + B[t] + k_j . R[t] + (q_i + g) . G[h_i != h_j])
//                 + D[t] - slope * d
//   out_i       = sum_j softmax_j(score(i, j)) v_j, zeros when there are no keys
//
// Three parts meet here, and a new kind of attention changes one of them:
//   sources      where keys lie: rings and other rows. attention.cc turns positions into spans of keys in
//                memory.
//   pattern      which keys a query sees: patterns/, one function each; seen.h adds what masks
//                take away and flags add.
//   score terms  what is added to q . k or done to the weights: terms/, one struct each. Each can be
//                missing: relative (u, R, B), relative keys (k . R), segments (g, G, and the types h),
//                distance bias (D), alibi (slope), adaptive span (f). pinned_query: for keys of pinned
//                rows another q stands in (q_i + u) . k_j.
//
// All sources together form one sequence, in which every key has a position, the oldest first. d is the
// query's position minus the key's, negative for keys that are newer, and
// t = min(max(d + relative_zero + room, 0), rows of the table - 1) with room for the rows that are missing
// in rings that the step names. A ring lies in memory in up to three ranges; since everything below is
// defined on the sequence of the keys that are seen, the ranges cannot be told from the result.
//
// The order of the arithmetic, which every variant of the int8 kernel follows to the bit. sum, max,
// dot, exp, quantise are sum_f32, max_f32, dot_f32, exp_f32 (math.h) and quantize_group
// (quantize.h); a tile is the next 64 keys that are seen, in the order of their positions, the last tile
// what remains. A line with a term's name is left out without it.
//
//   m = -inf, l = 0, out[d] = 0
//   a, sa = quantise(q[d] + u[d]), of pinned rows with the pinned query for q      u: relative
//   b, sb = quantise(q[d])                                                         relative
//   g_0, g_1 = dot(q + g, G_0), dot(q + g, G_1)                                    segments, in float
//   for each tile, with its keys numbered j = 0, 1, ... from the tile's first:
//     s_j    = float(a . k_j) * (sa * sk_j)                                  sk: scale of the key
//     s_j    = (s_j + float(b . R_t) * (sb * sR_t)) + B_t                    relative
//     s_j    = s_j + float(k_j . R_t) * (sk_j * sR_t)                        relative keys
//     s_j    = s_j + g_0, or g_1 when the types differ                       segments
//     s_j    = s_j * scale
//     s_j    = s_j + D_t                                                     distance bias
//     s_j    = s_j - slope * float(d)                                        alibi
//     m'     = max(m, s_0, s_1, ...)
//     c      = exp(m - m');  p_j = exp(s_j - m');  m = m'
//     l      = l * c + sum(p_j)
//     p_j    = p_j * f(d);  n = n * c + sum(p_j)                             adaptive span
//     w_j    = p_j * sv_j                                                    sv: scale of the value
//     x      = max(|w_j|); x < 2^-100: the tile adds nothing; inf counts as the largest float
//     W_j    = clamp(round(w_j * (32767 / x)), -32767, 32767)      int16, ties to even, NaN: 0
//     acc[d] = sum of W_j * v_j[d]                                 int32: 64 * 32767 * 128 < 2^31
//     out[d] = out[d] * c + float(acc[d]) * (x / 32767)
//   l      = n + 1e-8 * l                                                    adaptive span
//   r = 1 / l (0 when l is 0: there were no keys);  out[d] = out[d] * r
//   log-sum-exp, if it is wanted: m + log(l)
//
// A scale per tile keeps 16 bits for the weights of a tile however small they are beside those of
// another, so that a tail of thousands of keys with small weights survives.
//
// The float kernel is the same with a . k_j = dot(q + u, k_j), b . R_t = dot(q, R_t), k_j . R_t = dot(k_j, R_t), all scales 1,
// acc[d] = ((0 + p_0 * v_0[d]) + p_1 * v_1[d]) + ... in float and out[d] = out[d] * c + acc[d].
//
// Numbers that are not finite never lead to undefined behaviour. Mostly they lead to results that are
// not finite either; where one is quantised it counts as quantize.h says.

#include <cstddef>
#include <cstdint>

#include "ops/attention/terms/terms.h"
#include "ops/attention/tile.h"
#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

inline constexpr size_t kMaxAttentionSources = 8;
/// 2^16 * 127 * 128 < 2^31: a product of two int8 heads fits int32 whatever the bytes in the file
/// are.
inline constexpr size_t kMaxHeadWidth = 1 << 16;

/// What is carried from one tile to the next, besides `out`.
struct AttentionState {
  float max;
  /// Of the weights; after end(), what the values were divided by.
  float sum;
  float content_scale;
  float pinned_scale;
  TermStates terms;
  /// attention_scratch_bytes(), aligned to 64.
  std::byte* scratch;
};

/// One query with one head.
struct HeadTask {
  AttentionQuery query;
  /// Has its scratch.
  AttentionState state = {};
  float* out = nullptr;
  /// Which head of keys and values, counted from that of the first task.
  size_t kv_head = 0;
  /// In a block: how many of the tile's keys it sees, the first ones, at least one; and of the tiles to come.
  size_t seen = 0;
  uint64_t to_come = 0;
};

/// Queries in a block, at most.
inline constexpr size_t kBlockQueries = 24;

/// Computes out[value_width] for one query: begin, then tile for each tile, then end, all with the same
/// state, whose scratch the caller has set.
template <typename Element>
struct AttentionKernel {
  void (*begin)(const AttentionQuery& query, const AttentionShape& shape,
                const AttentionTerms& terms, AttentionState* state, float* out);
  void (*tile)(const AttentionQuery& query, const AttentionShape& shape,
               const AttentionTerms& terms, const KeyTile<Element>& keys, AttentionState* state,
               float* out);
  void (*end)(const AttentionShape& shape, const AttentionTerms& terms, AttentionState* state,
              float* out);
  /// As tile for each of `count` queries, to the bit; no span is pinned. Null: it would not be faster.
  void (*block)(HeadTask* const* tasks, size_t count, const AttentionShape& shape,
                const AttentionTerms& terms, const KeyTile<Element>& keys);
};

#define OXB_KERNEL(element, isa, name) extern const AttentionKernel<element> name;
#include "ops/attention/kernels.inc"
#undef OXB_KERNEL

/// Inputs, outputs and options as schema::AttentionOptions tells.
extern const OpSignature kAttentionSignature;
Status bind_attention(BindContext& context, RunFunction* run);
Status bind_attention_vulkan(VulkanBindContext& context);

}  // namespace oxbow
