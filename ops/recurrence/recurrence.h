#pragma once

// Attention whose past is a matrix; one rule for retention, state-space models, delta rules and linear
// attention. For each head S [dv, dk], token after token:
//
//   S <- S (diag(w) + a b^T) + v' k^T        y = S q
//   v' = f v                                 or, delta: f (v - (S diag(w)) k)
//
// The transpose of S is kept, dk rows of dv floats: every column of it is a recurrence of its own, so that
// columns are what is split over threads and vector lanes, and no sum is ever folded across lanes. Sums
// run over the keys, the first to the last, one product at a time. Tokens are always taken one by one:
// how a stream is cut into runs never changes a bit.
//
// Normaliser `keys`: z <- w z + k, y = S q / max(|z . q|, epsilon).
// Normaliser `floored`: z <- w z + f k, y = S q / (max(|z . q|, floor) + epsilon), a floor for each token.
// Normaliser `decays`: n <- w n + 1, and S is kept divided by sqrt(n).

#include <cstddef>

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

#define OXB_KERNEL(isa, fn) void fn(const RecurrenceTile& tile);
#include "ops/recurrence/kernels.inc"
#undef OXB_KERNEL

Status bind_recurrence(BindContext& context, RunFunction* run);

}  // namespace oxbow
