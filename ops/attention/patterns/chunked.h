#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// Chunks of `length` positions: the query's own, `before` chunks before and `after` chunks after it. With
/// `wrap` the first chunk follows the last; with `causal` only what is not newer than the query.
struct ChunkedPattern {
  uint64_t length = 1;
  uint64_t before = 0;
  uint64_t after = 0;
  bool wrap = false;
  bool causal = false;

  static ChunkedPattern of(const PatternParams& p, uint64_t /*head*/) {
    return {p.length, p.before, p.after, p.wrap, p.causal};
  }

  static Status check(BindContext& context, const PatternParams& p, bool own, size_t /*heads*/) {
    OXB_TRY(check_length(context, p));
    return p.wrap && !own ? context.fail("chunks that wrap need own rows") : Status::kOk;
  }

  template <typename Emit>
  void visit(uint64_t query, uint64_t positions, const Emit& emit) const {
    const uint64_t end = causal ? smaller(query + 1, positions) : positions;
    const uint64_t chunk = query / length;
    // Chunks there are, the query's own always among them.
    const uint64_t there = (positions + length - 1) / length;
    const uint64_t chunks = there < chunk + 1 ? chunk + 1 : there;
    if (wrap && before + after + 1 >= chunks) {
      emit_range(0, end, emit);
    } else if (wrap && chunk < before) {
      emit_chunks(0, chunk + after + 1, end, emit);
      emit_chunks(chunks - (before - chunk), chunks, end, emit);
    } else if (wrap && chunk + after >= chunks) {
      emit_chunks(0, chunk + after + 1 - chunks, end, emit);
      emit_chunks(chunk - before, chunks, end, emit);
    } else {
      emit_chunks(chunk - smaller(before, chunk), smaller(chunk + after + 1, chunks), end, emit);
    }
  }

 private:
  /// Chunks [first, last), cut at position `end`.
  template <typename Emit>
  void emit_chunks(uint64_t first, uint64_t last, uint64_t end, const Emit& emit) const {
    emit_range(first * length, smaller(last * length, end), emit);
  }
};

}  // namespace oxbow
