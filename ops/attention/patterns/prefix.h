#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// All positions up to the query's own, and all of the first `length`.
struct PrefixPattern {
  uint64_t length = 0;

  static constexpr bool kFromStart = true;

  static PrefixPattern of(const PatternParams& p, uint64_t /*head*/) { return {p.length}; }

  template <typename Emit>
  void visit(uint64_t query, uint64_t positions, const Emit& emit) const {
    const uint64_t end = query + 1 < length ? length : query + 1;
    emit_range(0, smaller(end, positions), emit);
  }
};

}  // namespace oxbow
