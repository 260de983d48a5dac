#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// All positions up to the query's own.
struct CausalPattern {
  static constexpr bool kFromStart = true;

  static CausalPattern of(const PatternParams&, uint64_t /*head*/) { return {}; }

  template <typename Emit>
  void visit(uint64_t query, uint64_t positions, const Emit& emit) const {
    emit_range(0, smaller(query + 1, positions), emit);
  }
};

}  // namespace oxbow
