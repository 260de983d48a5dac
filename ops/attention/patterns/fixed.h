#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// Groups of `length` positions: of the query's own group all up to the query, of each one before it
/// `summary` positions at its end; each next head of `summary_sets` sees as many in front of them.
struct FixedPattern {
  static bool depends_on_head(const PatternParams& p) { return p.summary_sets > 1; }

  static Status check(BindContext& context, const PatternParams& p, bool /*own*/,
                      size_t /*heads*/) {
    OXB_TRY(check_length(context, p));
    if (p.summary_sets == 0 || uint64_t{p.summary} * p.summary_sets > p.length) {
      return context.fail("%u sets of %u summary positions do not fit groups of %u", p.summary_sets,
                          p.summary, p.length);
    }
    return Status::kOk;
  }

  static void visit(const PatternParams& p, uint64_t head, uint64_t query, uint64_t positions,
                    SpanSink emit) {
    const uint64_t length = p.length, summary = p.summary, groups = query / length;
    // bind knows that all sets fit a group.
    const uint64_t offset = length - summary * (head % p.summary_sets + 1);
    if (summary == 1 && groups != 0) {
      emit(PositionSpan{offset, groups, length});
    } else if (summary != 0) {
      for (uint64_t group = 0; group < groups; ++group) {
        emit(PositionSpan{group * length + offset, summary, 1});
      }
    }
    emit_range(groups * length, smaller(query + 1, positions), emit);
  }
};

}  // namespace oxbow
