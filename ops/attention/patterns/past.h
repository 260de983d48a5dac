#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// `before` positions before the query's own, which is not among them, and the first `first` positions.
struct PastPattern {
  uint64_t before = 0;
  uint64_t first = 0;

  static PastPattern of(const PatternParams& p, uint64_t /*head*/) { return {p.before, p.first}; }

  template <typename Emit>
  void visit(uint64_t query, uint64_t positions, const Emit& emit) const {
    const uint64_t kept = smaller(first, positions);
    const uint64_t oldest = query - smaller(before, query);
    emit_range(0, kept, emit);
    emit_range(oldest < kept ? kept : oldest, query, emit);
  }
};

}  // namespace oxbow
