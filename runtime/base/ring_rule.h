#pragma once

// The rule by which rows leave a ring, shared by the op that looks at them before they go
// (ring_evict) and the op that drops them (ring_push). Put the rows held and the new ones in one
// line, oldest first:
//
//   [ held ............ | new ........ ]        n = ceil(max(0, held + new - capacity) / group)
//   [ n * group leave | the rest stays ]
//
// So rows leave in whole groups, and a ring may fall short of its capacity by up to group - 1 rows.

#include <cstdint>

namespace oxbow {

struct RingStep {
  /// Groups that leave, and the rows in them: they may reach into the new rows.
  uint64_t groups = 0;
  uint64_t leaving = 0;
  /// Rows in the ring afterwards; never more than its capacity.
  uint64_t staying = 0;
};

/// Without this a last group could ask for more rows than there are.
constexpr bool ring_takes_group(uint64_t capacity, uint64_t group) {
  return capacity > 0 && group > 0 && capacity + 1 >= group;
}

/// Call only with sizes that ring_takes_group() accepts, held <= capacity.
constexpr RingStep ring_step(uint64_t held, uint64_t added, uint64_t capacity, uint64_t group) {
  const uint64_t total = held + added;
  const uint64_t excess = total > capacity ? total - capacity : 0;
  RingStep step;
  step.groups = (excess + group - 1) / group;
  step.leaving = step.groups * group;
  step.staying = total - step.leaving;
  return step;
}

}  // namespace oxbow
