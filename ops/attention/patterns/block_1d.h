#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// Blocks of `length` positions: of the query's block all up to the query, and `before` positions in front of
/// the block.
struct Block1DPattern {
  static Status check(BindContext& context, const PatternParams& p, bool /*own*/,
                      size_t /*heads*/) {
    return check_length(context, p);
  }

  static void visit(const PatternParams& p, uint64_t /*head*/, uint64_t query, uint64_t positions,
                    SpanSink emit) {
    const uint64_t block = query / p.length * p.length;
    emit_range(block - smaller(p.before, block), smaller(query + 1, positions), emit);
  }
};

}  // namespace oxbow
