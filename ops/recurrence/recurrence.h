#pragma once

// Attention whose past is a matrix; one rule for retention, state-space models, delta rules and linear
// attention. For each head S [dv, dk], token after token:
//
//   S <- S (diag(w) + a b^T) + v' k^T        y = S q
//   v' = f v                                 or, delta: f (v - (S diag(w)) k)
//
// The transpose of S is kept, dk rows of dv floats: every column of it is a recurrence of its own, so that
// columns are what is split over threads and vector lanes, and no sum is ever folded across lanes. Sums
// run over the keys, the first to the last, one product at a time. Runs of fewer than kRecurrenceChunked
// tokens take them one by one: how such runs cut a stream never changes a bit.
//
// Longer runs with one decay for each head and wide keys take kRecurrenceChunk tokens at a time, if they read what they wrote: what
// the chunk before left is multiplied by a matrix of them, and they by each other. With D(t, s) the product of the
// decays behind token s up to t, and S what the chunk begins with:
//
//   u_t = f v_t                              or, delta: f (v_t - D(t, -1) S k_t - sum_{s<t} D(t, s) (k_s . k_t) u_s)
//   y_t = D(t, -1) S q_t + sum_{s<=t} D(t, s) (k_s . q_t) u_s
//
// The same numbers up to rounding; how far they may be apart is told in docs/numerics.md, and a test holds them to it.
//
// Normaliser `keys`: z <- w z + k, y = S q / max(|z . q|, epsilon).
// Normaliser `floored`: z <- w z + f k, y = S q / (max(|z . q|, floor) + epsilon), a floor for each token.
// Normaliser `decays`: n <- w n + 1, and S is kept divided by sqrt(n).

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

/// Columns of the state that one call of a kernel computes at most.
inline constexpr size_t kRecurrenceColumns = 32;

/// Rows of tokens: token t's values begin at data + t * stride. Null: there are none.
struct TokenRows {
  const float* data = nullptr;
  size_t stride = 0;
};

/// Some columns of one head, all tokens of a run.
struct RecurrenceTile {
  size_t tokens = 0;
  size_t keys = 0;
  size_t columns = 0;
  /// Row i, the columns of key i, begins at state + i * state_stride.
  float* state = nullptr;
  size_t state_stride = 0;
  /// q null: nothing is read. k and v null: nothing is written.
  TokenRows q, k, v;
  /// One value for each key if decay_per_key, else one for all.
  TokenRows decay;
  bool decay_per_key = false;
  /// One value.
  TokenRows factor;
  TokenRows a, b;
  /// One value, which y is divided by.
  TokenRows divisor;
  bool delta = false;
  bool read_before = false;
  float* y = nullptr;
  size_t y_stride = 0;
};

using RecurrenceKernel = void (*)(const RecurrenceTile& tile);

/// Tokens of a chunk, and of the shortest run that is cut into chunks.
inline constexpr size_t kRecurrenceChunk = 16;
inline constexpr size_t kRecurrenceChunked = 64;
/// Wider keys than this: a column's part of the state, with its neighbours', fills the first cache, and is better loaded
/// once for a chunk than for each token. Narrower ones gain nothing.
inline constexpr size_t kRecurrenceChunkKeys = 128;
/// How far what chunks give may be from what tokens one by one give: |a - b| <= this * (1 + |b|), for states and values
/// of about 1 and keys no longer than that.
inline constexpr float kRecurrenceChunkError = 2e-5f;

/// What a token is to those before it in its chunk: D(t, s) times k_s . q_t, and k_s . k_t.
struct ChunkRow {
  float read[kRecurrenceChunk];
  float known[kRecurrenceChunk];
  /// From what the chunk began with to the token, and from the token to the chunk's last.
  float from_start, to_end;
};

/// The rows of the chunk that begins with token `begin`; of the tile, only what is the head's is looked at.
using ChunkRowsKernel = void (*)(const RecurrenceTile& tile, size_t begin, ChunkRow* rows);
/// All tokens of the tile; a row for each.
using ChunksKernel = void (*)(const RecurrenceTile& tile, const ChunkRow* rows);

#define OXB_CHUNKS(isa, name)                                                                  \
  void recurrence_chunk_rows_##name(const RecurrenceTile& tile, size_t begin, ChunkRow* rows); \
  void recurrence_chunks_##name(const RecurrenceTile& tile, const ChunkRow* rows);
#include "ops/recurrence/chunks.inc"
#undef OXB_CHUNKS

#define OXB_KERNEL(isa, fn) void fn(const RecurrenceTile& tile);
#include "ops/recurrence/kernels.inc"
#undef OXB_KERNEL

extern const OpSignature kRecurrenceSignature;
Status bind_recurrence(BindContext& context, RunFunction* run);
Status bind_recurrence_vulkan(VulkanBindContext& context);

}  // namespace oxbow
