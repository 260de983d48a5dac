#pragma once

#include <cstdint>

#include "ops/attention/patterns/slot_span.h"

namespace oxbow {

/// All slots up to the query's own.
struct CausalPattern {
  template <typename Emit>
  void visit(uint64_t query, uint64_t slots, const Emit& emit) const {
    emit_range(0, smaller_slot(query + 1, slots), emit);
  }
};

}  // namespace oxbow
