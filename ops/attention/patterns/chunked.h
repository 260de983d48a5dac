#pragma once

#include <cstdint>

#include "ops/attention/patterns/slot_span.h"

namespace oxbow {

/// Chunks of `length` slots: the query's own, `before` chunks before and `after` chunks after it. With
/// `wrap` the first chunk follows the last; with `causal` only what is not newer than the query.
struct ChunkedPattern {
  uint64_t length = 1;
  uint64_t before = 0;
  uint64_t after = 0;
  bool wrap = false;
  bool causal = false;

  template <typename Emit>
  void visit(uint64_t query, uint64_t slots, const Emit& emit) const {
    const uint64_t end = causal ? smaller_slot(query + 1, slots) : slots;
    const uint64_t chunk = query / length;
    // Chunks there are, the query's own always among them.
    const uint64_t there = (slots + length - 1) / length;
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
      emit_chunks(chunk - smaller_slot(before, chunk), smaller_slot(chunk + after + 1, chunks), end,
                  emit);
    }
  }

 private:
  /// Chunks [first, last), cut at slot `end`.
  template <typename Emit>
  void emit_chunks(uint64_t first, uint64_t last, uint64_t end, const Emit& emit) const {
    emit_range(first * length, smaller_slot(last * length, end), emit);
  }
};

}  // namespace oxbow
