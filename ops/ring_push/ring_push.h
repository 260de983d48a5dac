#pragma once

// Appends the rows of a run to the states of a ring, and drops the oldest by the rule of
// ring_rule.h.
//
//   [ held | new ], row r at slot (head + r) % capacity
//   head'  = (head + leaving) % capacity,  count' = staying
//
// Only new rows that stay are written: when more come than the ring can hold, the first of them
// leave at once. F32 rows become I8 as quantize.h tells; I8 rows are copied with their scales.

#include <cstddef>
#include <cstdint>

#include "runtime/op.h"

namespace oxbow {

inline constexpr size_t kMaxRingStates = 8;

struct RingPushParams {
  Tensor rows[kMaxRingStates], states[kMaxRingStates];
  size_t count = 0;
  uint32_t group = 1;
};

/// Inputs, outputs and options as schema::RingPushOptions tells.
Status bind_ring_push(BindContext& context, RunFunction* run);

}  // namespace oxbow
