#pragma once

#include <cstdint>

#include "ops/attention/patterns/slot_span.h"

namespace oxbow {

/// The query's own slot and `before` slots before it; of those further back every `length`-th.
struct StridedPattern {
  uint64_t before = 0;
  uint64_t length = 1;

  template <typename Emit>
  void visit(uint64_t query, uint64_t slots, const Emit& emit) const {
    const uint64_t window = query - smaller_slot(before, query);
    const uint64_t first = query % length;
    if (first < window) emit(SlotSpan{first, (window - first + length - 1) / length, length});
    emit_range(window, smaller_slot(query + 1, slots), emit);
  }
};

}  // namespace oxbow
