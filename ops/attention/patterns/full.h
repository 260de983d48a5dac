#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// Every position: encoders, and attention to what another model wrote.
struct FullPattern {
  static constexpr bool kFromStart = true;

  static void visit(const PatternParams&, uint64_t /*head*/, uint64_t /*query*/, uint64_t positions,
                    SpanSink emit) {
    emit_range(0, positions, emit);
  }
};

}  // namespace oxbow
