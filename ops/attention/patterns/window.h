#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// `before` positions before and `after` positions after the query's own, taken every `dilation` positions, and
/// the first `first` positions; with `causal` only what is not newer than the query.
struct WindowPattern {
  static bool depends_on_head(const PatternParams& p) { return p.dilations > 1; }
  static bool fits_shader(const PatternParams& p) { return p.dilations <= 1; }

  static Status check(BindContext& context, const PatternParams& p, bool /*own*/, size_t heads) {
    // Many steps may share one long list.
    constexpr uint32_t kMaxDilations = 4096;
    if ((p.dilations > 1 && p.dilations != heads) || p.dilations > kMaxDilations) {
      return context.fail("has %u dilations for %zu heads", p.dilations, heads);
    }
    for (uint32_t i = 0; i < p.dilations; ++i) {
      if (p.dilation[i] == 0) return context.fail("dilation %u is 0", i);
    }
    return Status::kOk;
  }

  static void visit(const PatternParams& p, uint64_t head, uint64_t query, uint64_t positions,
                    SpanSink emit) {
    const uint64_t dilation = p.dilations == 0 ? 1 : p.dilation[p.dilations == 1 ? 0 : head];
    const uint64_t end = p.causal ? smaller(query + 1, positions) : positions;
    const uint64_t kept = smaller(p.first, end);
    emit_range(0, kept, emit);
    // The oldest key of the window, then the first of them that is not among those kept.
    uint64_t key = query - smaller(p.before, query / dilation) * dilation;
    if (key < kept) key += (kept - key + dilation - 1) / dilation * dilation;
    uint64_t newest = query;
    if (query + 1 < end) newest += smaller(p.after, (end - 1 - query) / dilation) * dilation;
    // A query without a key of its own stands just behind the last one.
    if (newest >= end) {
      if (newest < dilation) return;
      newest -= dilation;
    }
    if (key <= newest) emit(PositionSpan{key, (newest - key) / dilation + 1, dilation});
  }
};

}  // namespace oxbow
