#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// `before` positions before the query's own, which is not among them, and the first `first` positions.
struct PastPattern {
  static void visit(const PatternParams& p, uint64_t /*head*/, uint64_t query, uint64_t positions,
                    SpanSink emit) {
    const uint64_t kept = smaller(p.first, positions);
    const uint64_t oldest = query - smaller(p.before, query);
    emit_range(0, kept, emit);
    emit_range(oldest < kept ? kept : oldest, query, emit);
  }
};

}  // namespace oxbow
