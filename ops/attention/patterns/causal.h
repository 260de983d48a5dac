#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// All positions up to the query's own.
struct CausalPattern {
  static constexpr bool kFromStart = true;

  static void visit(const PatternParams&, uint64_t /*head*/, uint64_t query, uint64_t positions,
                    SpanSink emit) {
    emit_range(0, smaller(query + 1, positions), emit);
  }
};

}  // namespace oxbow
