#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// Chunks of `length` positions: the query's own, `before` chunks before and `after` chunks after it. With
/// `wrap` the first chunk follows the last; with `causal` only what is not newer than the query.
struct ChunkedPattern {
  static Status check(BindContext& context, const PatternParams& p, bool own, size_t /*heads*/) {
    OXB_TRY(check_length(context, p));
    return p.wrap && !own ? context.fail("chunks that wrap need own rows") : Status::kOk;
  }

  static void visit(const PatternParams& p, uint64_t /*head*/, uint64_t query, uint64_t positions,
                    SpanSink emit) {
    const uint64_t length = p.length, before = p.before, after = p.after;
    const uint64_t end = p.causal ? smaller(query + 1, positions) : positions;
    const uint64_t chunk = query / length;
    // Chunks there are, the query's own always among them.
    const uint64_t there = (positions + length - 1) / length;
    const uint64_t chunks = there < chunk + 1 ? chunk + 1 : there;
    const auto emit_chunks = [&](uint64_t first, uint64_t last) {
      emit_range(first * length, smaller(last * length, end), emit);
    };
    if (p.wrap && before + after + 1 >= chunks) {
      emit_range(0, end, emit);
    } else if (p.wrap && chunk < before) {
      emit_chunks(0, chunk + after + 1);
      emit_chunks(chunks - (before - chunk), chunks);
    } else if (p.wrap && chunk + after >= chunks) {
      emit_chunks(0, chunk + after + 1 - chunks);
      emit_chunks(chunk - before, chunks);
    } else {
      emit_chunks(chunk - smaller(before, chunk), smaller(chunk + after + 1, chunks));
    }
  }
};

}  // namespace oxbow
