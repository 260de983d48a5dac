#pragma once

// What patterns are written in. All sources of keys together form one sequence of slots, the oldest
// first. A pattern is a struct of parameters with a function
//
//   visit(query, slots, emit)   calls emit(SlotSpan) for the keys that the query at slot `query` sees
//                               among slots [0, slots): in ascending order, every key once, no span
//                               empty. `query` is below `slots`, or equal to it when the query has no
//                               key of its own. Work is in proportion to the keys that are seen.
//
// Parameters are any 32-bit numbers (lengths not 0) and slots stay below 2^36, so that sums fit 64
// bits; products are only formed of numbers that were clamped to the slots before.

#include <cstdint>

namespace oxbow {

/// Slots first, first + step, ..., `count` of them.
struct SlotSpan {
  uint64_t first = 0;
  uint64_t count = 0;
  uint64_t step = 1;
};

constexpr uint64_t smaller_slot(uint64_t a, uint64_t b) { return a < b ? a : b; }

/// Slots [first, end), unless there are none.
template <typename Emit>
void emit_range(uint64_t first, uint64_t end, const Emit& emit) {
  if (first < end) emit(SlotSpan{first, end - first, 1});
}

}  // namespace oxbow
