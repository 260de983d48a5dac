#pragma once

#include <cstdint>

#include "ops/attention/patterns/slot_span.h"

namespace oxbow {

/// Blocks of `length` slots: of the query's block all up to the query, and `before` slots in front of
/// the block.
struct Block1DPattern {
  uint64_t length = 1;
  uint64_t before = 0;

  template <typename Emit>
  void visit(uint64_t query, uint64_t slots, const Emit& emit) const {
    const uint64_t block = query / length * length;
    emit_range(block - smaller_slot(before, block), smaller_slot(query + 1, slots), emit);
  }
};

}  // namespace oxbow
