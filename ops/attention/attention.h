#pragma once

// Attention of one query head over any number of keys, in memory that does not grow with them.
//
//   score(i, j) = scale * ((q_i + u) . k_j + q_i . R[t] + B[t] + k_j . R[t] + (q_i + g) . G[h_i != h_j])
//                 + D[t] - slope * d
//   out_i       = sum_j softmax_j(score(i, j)) v_j, zeros when there are no keys
//
// Three parts meet here, and a new kind of attention changes one of them:
//   sources      where keys lie: rings, then rows of this run. key_stream.h turns slots into runs of
//                keys in memory.
//   pattern      which keys a query sees: patterns/, one small struct each; filters.h adds what masks
//                take away and flags add.
//   score terms  what is added to q . k. Each can be missing: relative (u, R, B), relative keys (k . R), segments (g, G, and
//                the types h), distance bias (D), alibi (slope). pinned_query: for keys of pinned
//                rows another q stands in (q_i + u) . k_j.
//
// All sources together form one sequence of slots, oldest first. d is the query's slot minus the key's,
// negative for keys that are newer, and t = min(max(d + relative_zero + room, 0), rows of the table - 1)
// with room for the rows that are missing in rings that the step names. A
// ring lies in memory in up to three pieces; since everything below is defined on the sequence of the
// keys that are seen, the pieces cannot be told from the result.
//
// The order of the arithmetic, which every variant of the int8 kernel follows to the bit. sum, max,
// dot, exp, quantise are sum_f32, max_f32, dot_f32, exp_f32 (math.h) and quantize_group
// (quantize.h); a tile is the next 64 keys that are seen, in the order of their slots, the last tile
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
// The float kernel is the same with a . k_j = dot(q + u, k_j), b . R_t = dot(q, R_t), k_j . R_t = dot(k_j, R_t), all scales 1,
// acc[d] = ((0 + p_0 * v_0[d]) + p_1 * v_1[d]) + ... in float and out[d] = out[d] * c + acc[d].
//
// Numbers that are not finite never lead to undefined behaviour. Mostly they lead to results that are
// not finite either; where one is quantised it counts as quantize.h says.

#include <cstddef>
#include <cstdint>

#include "runtime/base/checked.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

inline constexpr size_t kAttentionTile = 64;
inline constexpr size_t kMaxAttentionSources = 8;
inline constexpr size_t kMaxAttentionRooms = 2;
/// 2^16 * 127 * 128 < 2^31: a product of two int8 heads fits int32 whatever the bytes in the file
/// are.
inline constexpr size_t kMaxHeadWidth = 1 << 16;

/// Keys at equal distances in memory and in the sequence of slots, with their values; of one key/value
/// head. From one to the next it is `step` times the strides of AttentionShape. Element is float or
/// int8_t; float has no scales. Not initialised, since a tile has many and uses few.
template <typename Element>
struct KeyRun {
  const Element* k;
  const Element* v;
  const float* k_scales;
  const float* v_scales;
  /// Types of the keys, `step` elements apart; null: all are 0. Read for segments only.
  const int32_t* types;
  size_t count;
  /// Slots from one key to the next, and the slot of the first.
  size_t step;
  size_t slot;
  /// The product with k is that of the pinned query.
  bool pinned;
};

inline constexpr size_t kCacheLine = 64;

/// Rows that will be wanted after those of a tile. A kernel asks for them a few at a time while it
/// computes: machines forget much of what they are asked for all at once.
template <typename Element>
struct RowsAhead {
  /// Null: there is nothing to ask for.
  const Element* k = nullptr;
  const Element* v = nullptr;
  /// Bytes from row to row, and how many cache lines of each row are wanted.
  size_t stride = 0;
  size_t row_lines = 1;
  /// Counted along the rows, this tile's lines are [first, first + count).
  size_t first = 0;
  size_t count = 0;
};

/// The next keys that a query sees, in ascending order of their slots.
template <typename Element>
struct KeyTile {
  KeyRun<Element> runs[kAttentionTile];
  size_t run_count;
  /// In all runs: 1 to kAttentionTile.
  size_t keys;
  RowsAhead<Element> ahead;
};

/// One query row of one head. What belongs to a term that AttentionShape does not name is not read.
template <typename Element>
struct AttentionQuery {
  const float* q = nullptr;
  /// The query's slot in the sequence; of a query without a key of its own the number of slots.
  size_t slot = 0;
  /// Not null: stands for q in the products with keys of pinned rows.
  const float* pinned_q = nullptr;
  const float* query_bias = nullptr;
  const Element* table = nullptr;
  const float* table_scales = nullptr;
  /// Of the relative term, or the distance bias.
  const float* bias = nullptr;
  float slope = 0.0f;
  const float* segment_bias = nullptr;
  const float* segment_table = nullptr;
  int32_t type = 0;
};

/// Common to all calls of a step. Strides are in elements, from one row to the next.
struct AttentionShape {
  size_t head_width = 0;
  float scale = 1.0f;
  bool relative = false;
  bool relative_keys = false;
  bool distance_bias = false;
  bool alibi = false;
  bool segments = false;
  size_t key_stride = 0;
  size_t key_scale_stride = 0;
  /// Rows of table and bias, and which of them belongs to d = 0.
  size_t distances = 0;
  size_t relative_zero = 0;
  size_t table_stride = 0;
  size_t table_scale_stride = 0;
  size_t bias_stride = 0;
  size_t segment_stride = 0;
};

/// What is carried from one tile to the next, besides `out`.
struct AttentionState {
  float max;
  float sum;
  float content_scale;
  float position_scale;
  float pinned_scale;
  /// Segment terms of keys of the query's type and of another one.
  float segment[2];
  /// attention_scratch_bytes(), aligned to 64.
  std::byte* scratch;
};

/// Computes out[head_width] for one query: begin, then tile for each tile, then end, all with the same
/// state, whose scratch the caller has set.
template <typename Element>
struct AttentionKernel {
  void (*begin)(const AttentionQuery<Element>& query, const AttentionShape& shape,
                AttentionState* state, float* out);
  void (*tile)(const AttentionQuery<Element>& query, const AttentionShape& shape,
               const KeyTile<Element>& keys, AttentionState* state, float* out);
  void (*end)(const AttentionShape& shape, AttentionState* state, float* out);
};

/// Room for three vectors of four-byte elements, each aligned to 64; for one more with a pinned query.
constexpr size_t attention_scratch_bytes(size_t head_width, bool pinned_query) {
  return (pinned_query ? 4 : 3) * round_up(head_width * 4, kTensorAlignment);
}

#define OXB_KERNEL(element, isa, name) extern const AttentionKernel<element> name;
#include "ops/attention/kernels.inc"
#undef OXB_KERNEL

/// Inputs, outputs and options as schema::AttentionOptions tells.
Status bind_attention(BindContext& context, RunFunction* run);
Status bind_attention_vulkan(VulkanBindContext& context);

}  // namespace oxbow
