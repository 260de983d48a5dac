#pragma once

#include <cstdint>

#include "ops/attention/patterns/slot_span.h"

namespace oxbow {

/// `before` slots before and `after` slots after the query's own, taken every `dilation` slots, and
/// the first `first` slots; with `causal` only what is not newer than the query.
struct WindowPattern {
  uint64_t before = 0;
  uint64_t after = 0;
  uint64_t dilation = 1;
  uint64_t first = 0;
  bool causal = false;

  template <typename Emit>
  void visit(uint64_t query, uint64_t slots, const Emit& emit) const {
    const uint64_t end = causal ? smaller_slot(query + 1, slots) : slots;
    const uint64_t kept = smaller_slot(first, end);
    emit_range(0, kept, emit);
    // The oldest key of the window, then the first of them that is not among those kept.
    uint64_t key = query - smaller_slot(before, query / dilation) * dilation;
    if (key < kept) key += (kept - key + dilation - 1) / dilation * dilation;
    uint64_t newest = query;
    if (query + 1 < end) newest += smaller_slot(after, (end - 1 - query) / dilation) * dilation;
    // A query without a key of its own stands just behind the last one.
    if (newest >= end) {
      if (newest < dilation) return;
      newest -= dilation;
    }
    if (key <= newest) emit(SlotSpan{key, (newest - key) / dilation + 1, dilation});
  }
};

}  // namespace oxbow
