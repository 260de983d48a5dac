#pragma once

#include <cstdint>

#include "ops/attention/patterns/slot_span.h"

namespace oxbow {

/// All slots up to the query's own, and all of the first `length`.
struct PrefixPattern {
  uint64_t length = 0;

  template <typename Emit>
  void visit(uint64_t query, uint64_t slots, const Emit& emit) const {
    const uint64_t end = query + 1 < length ? length : query + 1;
    emit_range(0, smaller_slot(end, slots), emit);
  }
};

}  // namespace oxbow
