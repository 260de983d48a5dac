#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// Blocks of `length` positions: of the query's block all up to the query, and `before` positions in front of
/// the block.
struct Block1DPattern {
  uint64_t length = 1;
  uint64_t before = 0;

  static Block1DPattern of(const PatternParams& p, uint64_t /*head*/) {
    return {p.length, p.before};
  }

  static Status check(BindContext& context, const PatternParams& p, bool /*own*/,
                      size_t /*heads*/) {
    return check_length(context, p);
  }

  template <typename Emit>
  void visit(uint64_t query, uint64_t positions, const Emit& emit) const {
    const uint64_t block = query / length * length;
    emit_range(block - smaller(before, block), smaller(query + 1, positions), emit);
  }
};

}  // namespace oxbow
