#pragma once

// Appends the rows of a run to the states of a ring, and drops the oldest by the rule of
// ring_rule.h.
//
//   [ held | new ], row r at ring_slot(r)
//   head'  = (head + leaving) % (capacity - pinned),  count' = staying
//
// The first `pinned` rows that ever enter stay: those that leave are the oldest behind them. Only
// new rows that stay are written: when more come than the ring can hold, the first of them leave at
// once. With `replace` the ring is emptied before; with `clear` it is emptied and nothing enters. F32 rows become I8 as quantize.h tells; I8 rows are copied with their scales, I32 rows as
// they are. A state of I4Rows keeps I8 rows in four bits (i4_rows.h).

#include <cstddef>
#include <cstdint>

#include "ops/common/signature.h"
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
  bool clear = false;
};

/// Which of this run's rows go where: the first `pins` and those from `first` on, `rows` together. Row r goes
/// to the slot of row before.count + r of the ring.
struct RingPushPlan {
  size_t rows = 0;
  size_t pins = 0;
  size_t first = 0;
  RingPosition before;

  size_t row(size_t item) const { return item < pins ? item : first + item - pins; }
};

/// Moves the ring on, and tells what is to be written.
RingPushPlan plan_ring_push(RunContext& context, const RingPushParams& params);

extern const OpSignature kRingPushSignature;
/// Inputs, outputs and options as schema::RingPushOptions tells.
Status bind_ring_push(BindContext& context, RunFunction* run);
Status bind_ring_push_vulkan(VulkanBindContext& context);

}  // namespace oxbow
