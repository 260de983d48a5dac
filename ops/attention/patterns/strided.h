#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// The query's own position and `before` positions before it; of those further back every `length`-th.
struct StridedPattern {
  static Status check(BindContext& context, const PatternParams& p, bool /*own*/,
                      size_t /*heads*/) {
    return check_length(context, p);
  }

  static void visit(const PatternParams& p, uint64_t /*head*/, uint64_t query, uint64_t positions,
                    SpanSink emit) {
    const uint64_t length = p.length, window = query - smaller(p.before, query);
    const uint64_t first = query % length;
    if (first < window) emit(PositionSpan{first, (window - first + length - 1) / length, length});
    emit_range(window, smaller(query + 1, positions), emit);
  }
};

}  // namespace oxbow
