#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// All positions up to the query's own, and all of the first `length`.
struct PrefixPattern {
  static constexpr bool kFromStart = true;

  static void visit(const PatternParams& p, uint64_t /*head*/, uint64_t query, uint64_t positions,
                    SpanSink emit) {
    const uint64_t end = query + 1 < p.length ? p.length : query + 1;
    emit_range(0, smaller(end, positions), emit);
  }
};

}  // namespace oxbow
