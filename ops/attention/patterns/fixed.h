#pragma once

#include <cstdint>

#include "ops/attention/patterns/slot_span.h"

namespace oxbow {

/// Groups of `length` slots: of the query's own group all up to the query, of each one before it
/// `summary` slots, which end `skipped` slots before the group does; summary + skipped <= length.
struct FixedPattern {
  uint64_t length = 1;
  uint64_t summary = 0;
  uint64_t skipped = 0;

  template <typename Emit>
  void visit(uint64_t query, uint64_t slots, const Emit& emit) const {
    const uint64_t groups = query / length;
    const uint64_t offset = length - skipped - summary;
    if (summary == 1 && groups != 0) {
      emit(SlotSpan{offset, groups, length});
    } else if (summary != 0) {
      for (uint64_t group = 0; group < groups; ++group) {
        emit(SlotSpan{group * length + offset, summary, 1});
      }
    }
    emit_range(groups * length, smaller_slot(query + 1, slots), emit);
  }
};

}  // namespace oxbow
