#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// Chunks of `length` rows in a circle: the query's own, `before` before and `after` behind it, each as often as it is
/// met (the local layers of Reformer, Kitaev et al. 2020). Rows that are sorted first are sorted_run.cc's.
struct CirclePattern {
  static constexpr bool kAnyOrder = true;

  static Status check(BindContext& context, const PatternParams& p, bool /*own*/,
                      size_t /*heads*/) {
    OXB_TRY(check_length(context, p));
    if (p.before > kMostChunks || p.after > kMostChunks) {
      return context.fail("a circle with %u chunks before and %u after, expected at most %u",
                          p.before, p.after, kMostChunks);
    }
    return p.rounds == 0 ? context.fail("a circle of 0 rounds") : Status::kOk;
  }

  static void visit(const PatternParams& p, uint64_t /*head*/, uint64_t query, uint64_t positions,
                    SpanSink emit) {
    const uint64_t length = p.length, before = p.before;
    const uint64_t end = p.causal ? smaller(query + 1, positions) : positions;
    if (positions <= p.full_up_to) return emit_range(0, end, emit);
    const uint64_t chunks = (positions + length - 1) / length;
    for (uint64_t i = 0; i < before + 1 + p.after; ++i) {
      const uint64_t chunk = neighbour(query / length, i, before, chunks);
      emit_range(chunk * length, smaller((chunk + 1) * length, end), emit);
    }
  }

  /// Number i of the chunks that `chunk` sees. As far away as the circle is round it is the chunk itself.
  static uint64_t neighbour(uint64_t chunk, uint64_t i, uint64_t before, uint64_t chunks) {
    if (i >= before) return i - before >= chunks ? chunk : (chunk + i - before) % chunks;
    return before - i >= chunks ? chunk : (chunk + chunks - (before - i)) % chunks;
  }

  static constexpr uint32_t kMostChunks = 1024;
};

}  // namespace oxbow
