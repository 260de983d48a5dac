#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// Segments of `length` positions of the stream, of which a group of heads sees every `dilation`-th (LongNet, Ding et
/// al. 2023), each group from another one on; nothing newer than the query.
struct SegmentsPattern {
  static bool depends_on_head(const PatternParams& p) {
    return p.dilations != 0 && p.dilation[0] > 1;
  }

  static Status check(BindContext& context, const PatternParams& p, bool own, size_t /*heads*/) {
    OXB_TRY(check_length(context, p));
    if (p.dilations > 1 || (p.dilations == 1 && p.dilation[0] == 0)) {
      return context.fail("segments have %u dilations, expected one that is not 0", p.dilations);
    }
    return own ? Status::kOk : context.fail("segments need own rows");
  }

  static void visit(const PatternParams& p, uint64_t head, uint64_t query, uint64_t positions,
                    SpanSink emit) {
    const uint64_t dilation = p.dilations == 0 ? 1 : p.dilation[0];
    const uint64_t group = head / ((p.heads + dilation - 1) / dilation);
    const uint64_t inside = (p.origin + query) % p.length;
    if (query >= positions || inside % dilation != group) return;
    // What the memory still has of the segment.
    const uint64_t steps = smaller(inside, query) / dilation;
    emit(PositionSpan{query - steps * dilation, steps + 1, dilation});
  }
};

}  // namespace oxbow
