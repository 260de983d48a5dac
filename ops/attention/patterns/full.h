#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// Every position: encoders, and attention to what another model wrote.
struct FullPattern {
  static constexpr bool kFromStart = true;

  static FullPattern of(const PatternParams&, uint64_t /*head*/) { return {}; }

  template <typename Emit>
  void visit(uint64_t /*query*/, uint64_t positions, const Emit& emit) const {
    emit_range(0, positions, emit);
  }
};

}  // namespace oxbow
