#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// The query's own position and `before` positions before it; of those further back every `length`-th.
struct StridedPattern {
  uint64_t before = 0;
  uint64_t length = 1;

  static StridedPattern of(const PatternParams& p, uint64_t /*head*/) {
    return {p.before, p.length};
  }

  static Status check(BindContext& context, const PatternParams& p, bool /*own*/,
                      size_t /*heads*/) {
    return check_length(context, p);
  }

  template <typename Emit>
  void visit(uint64_t query, uint64_t positions, const Emit& emit) const {
    const uint64_t window = query - smaller(before, query);
    const uint64_t first = query % length;
    if (first < window) emit(PositionSpan{first, (window - first + length - 1) / length, length});
    emit_range(window, smaller(query + 1, positions), emit);
  }
};

}  // namespace oxbow
