#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// Segments of `length` positions of the stream, of which a group of heads sees every `dilation`-th (LongNet, Ding et
/// al. 2023), each group from another one on; nothing newer than the query.
struct SegmentsPattern {
  uint64_t length = 1;
  uint64_t dilation = 1;
  uint64_t group = 0;
  /// Position of the stream that position 0 is.
  uint64_t origin = 0;

  static SegmentsPattern of(const PatternParams& p, uint64_t head) {
    const uint64_t dilation = p.dilations == 0 ? 1 : p.dilation[0];
    return {p.length, dilation, head / ((p.heads + dilation - 1) / dilation), p.origin};
  }

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

  template <typename Emit>
  void visit(uint64_t query, uint64_t positions, const Emit& emit) const {
    const uint64_t inside = (origin + query) % length;
    if (query >= positions || inside % dilation != group) return;
    // What the memory still has of the segment.
    const uint64_t steps = smaller(inside, query) / dilation;
    emit(PositionSpan{query - steps * dilation, steps + 1, dilation});
  }
};

}  // namespace oxbow
