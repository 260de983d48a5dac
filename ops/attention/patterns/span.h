#pragma once

// What patterns are written in. All sources of keys together form one sequence, the oldest first, in which
// every key has a position. A pattern is a struct with
//
//   visit(params, head, query, positions, emit)   calls emit(PositionSpan) for the keys that the query at position
//                                        `query` sees with this head among positions [0, positions), which are not
//                                        none: in ascending order, every key once, no span empty. `query` is below
//                                        `positions`, or equal to it when the query has no key of its own. Work is
//                                        in proportion to the keys that are seen.
//
// and, where its kind wants them,
//
//   check(context, params, own, heads)   refuses what makes no sense in a file
//   depends_on_head(params)              whether heads see different positions; otherwise they do not
//   kFromStart                           a query sees the first positions and no others; otherwise any
//   kAnyOrder                            spans in any order, and keys more than once: all keys must be own rows
//   fits_shader(params)                  whether its shader, <name>.glsl, can do this; otherwise it can do all
//
// Parameters are any 32-bit numbers (lengths not 0) and positions stay below 2^36, so that sums fit 64
// bits; products are only formed of numbers that were clamped to the positions before.

#include <cstdint>

namespace oxbow {

/// Positions first, first + step, ..., `count` of them.
struct PositionSpan {
  uint64_t first = 0;
  uint64_t count = 0;
  uint64_t step = 1;
};

/// Where spans go.
struct SpanSink {
  void* target;
  void (*push)(void* target, const PositionSpan& span);

  void operator()(const PositionSpan& span) const { push(target, span); }
};

/// To target.push(span).
template <typename Target>
SpanSink sink_of(Target& target) {
  return {&target,
          [](void* to, const PositionSpan& span) { static_cast<Target*>(to)->push(span); }};
}

/// Stands for a row that there is not.
inline constexpr uint64_t kNoRow = UINT64_MAX;

constexpr uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/// Positions [first, end), unless there are none.
inline void emit_range(uint64_t first, uint64_t end, SpanSink emit) {
  if (first < end) emit(PositionSpan{first, end - first, 1});
}

}  // namespace oxbow
