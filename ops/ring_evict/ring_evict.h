#pragma once

// Reads the rows that will leave a ring when this run's rows are pushed (ring_rule.h), before they
// do: output row r is the `group` rows r * group, r * group + 1, ... of [ held | new ] side by
// side, in float. How many there are is told by the output's row symbol, which this op sets.
//
// With `all` every row that is held leaves, and the new ones do not count.
//
// With pad_front the e rows that exceed the ring are looked at instead, behind e % group rows of
// zeros; of that line the whole groups are given, so that the newest of the e may be missing.

#include <cstddef>
#include <cstdint>

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

struct RingEvictParams {
  Tensor rows, memory, groups;
  uint32_t group = 1;
  bool pad_front = false;
  /// Unless 0: nothing leaves when not exactly so many rows are new.
  uint32_t only_full = 0;
  bool all = false;
};

/// What is given: `groups` groups, of which the first `padding` rows are zeros.
struct EvictedRows {
  uint64_t groups = 0;
  uint64_t padding = 0;
};

EvictedRows find_evicted_rows(const RingEvictParams& params, uint64_t held, uint64_t added);

extern const OpSignature kRingEvictSignature;
/// Inputs, outputs and options as schema::RingEvictOptions tells.
Status bind_ring_evict(BindContext& context, RunFunction* run);
Status bind_ring_evict_vulkan(VulkanBindContext& context);

}  // namespace oxbow
