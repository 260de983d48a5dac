#pragma once

#include <cstdint>

#include "ops/attention/patterns/slot_span.h"

namespace oxbow {

/// Every slot: encoders, and attention to what another model wrote.
struct FullPattern {
  template <typename Emit>
  void visit(uint64_t /*query*/, uint64_t slots, const Emit& emit) const {
    emit_range(0, slots, emit);
  }
};

}  // namespace oxbow
