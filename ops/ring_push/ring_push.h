#pragma once

// Appends the rows of a run to the states of a ring, and drops the oldest by the rule of
// ring_rule.h.
//
//   [ held | new ], row r at ring_slot(r)
//   head'  = (head + leaving) % (capacity - pinned),  count' = staying
//
// The first `pinned` rows that ever enter stay: those that leave are the oldest behind them. Only
// new rows that stay are written: when more come than the ring can hold, the first of them leave at
// once. With `replace` the ring is emptied before. F32 rows become I8 as quantize.h tells; I8 rows are copied with their scales, I32 rows as
// they are.

#include <cstddef>
#include <cstdint>

#include "runtime/op.h"

namespace oxbow {

inline constexpr size_t kMaxRingStates = 8;

struct RingPushParams {
  Tensor rows[kMaxRingStates], states[kMaxRingStates];
  size_t count = 0;
  uint32_t group = 1;
  /// Unless 0: nothing happens when not exactly so many rows are new.
  uint32_t only_full = 0;
  /// Unless 0: rows behind the first so many are passed over.
  uint32_t first = 0;
  bool replace = false;
};

/// Inputs, outputs and options as schema::RingPushOptions tells.
Status bind_ring_push(BindContext& context, RunFunction* run);

}  // namespace oxbow
