#pragma once

// Which keys a query sees: those of its pattern, with rows that every query sees, without rows that none sees,
// and without what is beyond the reach of a term. Each filter takes spans in ascending order without
// doubles and passes such spans on.

#include <cstddef>
#include <cstdint>

#include "ops/attention/patterns/pattern.h"
#include "ops/attention/patterns/span.h"
#include "ops/attention/terms/terms.h"

namespace oxbow {

/// For each row the next one at which the mask changes between 0 and not 0, or `rows`.
inline void find_turns(const int32_t* mask, size_t rows, uint32_t* turns) {
  for (size_t i = rows; i-- > 0;) {
    const bool same = i + 1 < rows && (mask[i] != 0) == (mask[i + 1] != 0);
    turns[i] = same ? turns[i + 1] : static_cast<uint32_t>(i + 1);
  }
}

/// The rows whose flag is not 0; returns how many.
inline size_t find_globals(const int32_t* flags, size_t rows, uint32_t* list) {
  size_t count = 0;
  for (size_t i = 0; i < rows; ++i) {
    if (flags[i] != 0) list[count++] = static_cast<uint32_t>(i);
  }
  return count;
}

/// Adds the global rows to the spans pushed. Call finish() behind the last one.
template <typename Emit>
class GlobalsFilter {
 public:
  /// Row 0 is at position `first`.
  GlobalsFilter(const uint32_t* list, size_t count, uint64_t first, const Emit& emit)
      : next_(list), end_(list + count), first_(first), emit_(emit) {}

  void push(PositionSpan span) {
    while (span.count != 0) {
      emit_before(span.first);
      // The part of the span up to the next global key, which may be one of its own.
      uint64_t count = span.count;
      while (next_ != end_) {
        const uint64_t offset = first_ + *next_ - span.first;
        if (offset > (span.count - 1) * span.step) break;
        if (offset % span.step == 0) {
          ++next_;
          continue;
        }
        count = offset / span.step + 1;
        break;
      }
      emit_(PositionSpan{span.first, count, span.step});
      span.first += count * span.step;
      span.count -= count;
    }
  }

  void finish() { emit_before(UINT64_MAX); }

 private:
  /// Global keys below this position, neighbours together.
  void emit_before(uint64_t position) {
    while (next_ != end_ && first_ + *next_ < position) {
      const uint64_t first = first_ + *next_;
      uint64_t count = 1;
      for (++next_; next_ != end_ && first + count < position && first_ + *next_ == first + count;
           ++next_) {
        ++count;
      }
      emit_(PositionSpan{first, count, 1});
    }
  }

  const uint32_t* next_;
  const uint32_t* end_;
  uint64_t first_;
  const Emit& emit_;
};

/// Passes over the rows whose mask is 0; positions before `first` have none.
template <typename Emit>
class MaskFilter {
 public:
  /// `turns` are those of find_turns, or null: there is no mask. `kept`: a row that stays whatever its mask is, or kNoRow.
  MaskFilter(const int32_t* mask, const uint32_t* turns, uint64_t first, uint64_t kept,
             const Emit& emit)
      : mask_(mask), turns_(turns), first_(first), kept_(kept), emit_(emit) {}

  void push(PositionSpan span) const {
    if (turns_ == nullptr) return emit_(span);
    if (span.first < first_) {
      const uint64_t older = smaller(span.count, (first_ - span.first + span.step - 1) / span.step);
      emit_(PositionSpan{span.first, older, span.step});
      span.first += older * span.step;
      span.count -= older;
    }
    if (span.count == 0) return;
    if (span.step == 1) {
      push_range(span.first - first_, span.first - first_ + span.count);
    } else {
      push_steps(span);
    }
  }

 private:
  /// Rows [row, end): whole stretches at a time.
  void push_range(uint64_t row, uint64_t end) const {
    while (row < end) {
      const uint64_t turn = smaller(turns_[row], end);
      if (mask_[row] != 0) {
        emit_(PositionSpan{first_ + row, turn - row, 1});
      } else if (row <= kept_ && kept_ < turn) {
        emit_(PositionSpan{first_ + kept_, 1, 1});
      }
      row = turn;
    }
  }

  void push_steps(const PositionSpan& span) const {
    uint64_t row = span.first - first_, seen = 0;
    for (uint64_t i = 0; i < span.count; ++i, row += span.step) {
      if (mask_[row] != 0 || row == kept_) {
        ++seen;
        continue;
      }
      emit_seen(row, seen, span.step);
      seen = 0;
    }
    emit_seen(row, seen, span.step);
  }

  /// The `count` rows before `row`.
  void emit_seen(uint64_t row, uint64_t count, uint64_t step) const {
    if (count != 0) emit_(PositionSpan{first_ + row - count * step, count, step});
  }

  const int32_t* mask_;
  const uint32_t* turns_;
  uint64_t first_;
  uint64_t kept_;
  const Emit& emit_;
};

/// Drops what is older than `oldest`, but for the first `kept` positions.
template <typename Emit>
class ReachFilter {
 public:
  ReachFilter(uint64_t oldest, uint64_t kept, const Emit& emit)
      : oldest_(oldest), kept_(kept), emit_(emit) {}

  void push(PositionSpan span) const {
    if (kept_ < oldest_ && span.first < oldest_) {
      const uint64_t first = steps_to(span, kept_), skipped = steps_to(span, oldest_);
      if (first != 0) emit_(PositionSpan{span.first, first, span.step});
      span.first += skipped * span.step;
      span.count -= skipped;
    }
    if (span.count != 0) emit_(span);
  }

 private:
  /// How many of the span are below this position.
  static uint64_t steps_to(const PositionSpan& span, uint64_t position) {
    if (position <= span.first) return 0;
    return smaller(span.count, (position - span.first + span.step - 1) / span.step);
  }

  uint64_t oldest_;
  uint64_t kept_;
  const Emit& emit_;
};

/// What all queries of a run share.
struct Sight {
  /// All of them, and where the rows of the last source begin.
  uint64_t positions = 0;
  uint64_t last_source = 0;
  /// Of find_turns, null without a mask; of find_globals.
  const uint32_t* turns = nullptr;
  const uint32_t* globals = nullptr;
  size_t global_count = 0;
  /// Of the term Groups: rows of queries and positions of keys in a group; 0: there is no such term.
  uint64_t query_group = 0;
  uint64_t key_group = 0;
};

/// Emits what the query at position `query` sees of positions [0, positions) with this head, by its pattern.
template <typename Emit>
void visit_pattern(const PatternParams& p, uint64_t head, uint64_t query, uint64_t positions,
                   const Emit& emit) {
  if (positions == 0) return;
  with_pattern(p.kind, false, [&](auto type) {
    decltype(type)::Pattern::of(p, head).visit(query, positions, emit);
    return true;
  });
}

/// Whether a term cuts off what is far away, for each head by itself.
inline bool has_reach(const AttentionTerms& terms) {
  bool found = false;
  for_each_term(terms, [&](const auto& term) {
    found = found || requires { term.reach(0); };
  });
  return found;
}

/// The same by all that the step says; the query is row `row`.
template <typename Emit>
void visit_seen(const Sight& sight, const PatternParams& pattern, const AttentionTerms& terms,
                size_t head, size_t row, uint64_t query, const Emit& emit) {
  if (sight.query_group != 0) {
    const uint64_t group = row / sight.query_group, length = sight.key_group;
    // The group's first key is there, so that the product fits.
    if (group >= (sight.positions + length - 1) / length) return;
    return emit_range(group * length, smaller((group + 1) * length, sight.positions), emit);
  }
  if (sight.turns == nullptr && sight.globals == nullptr && !has_reach(terms) &&
      !terms.has(schema::TermKind::Sides)) {
    return visit_pattern(pattern, head, query, sight.positions, emit);
  }
  uint64_t oldest = 0, first = UINT64_MAX;
  for_each_term(terms, [&](const auto& term) {
    if constexpr (requires { term.reach(head); }) {
      // Distances below the reach are seen.
      const uint64_t reach = term.reach(head), nearest = reach > query ? 0 : query - reach + 1;
      oldest = oldest < nearest ? nearest : oldest;
      first = smaller(first, term.first);
    }
  });
  const ReachFilter within(oldest, first, emit);
  const auto to_reach = [&](const PositionSpan& span) { within.push(span); };
  const uint64_t kept = terms.key_mask.keeps_own ? row : kNoRow;
  const MaskFilter mask(terms.key_mask.mask, sight.turns, sight.last_source, kept, to_reach);
  const auto to_mask = [&](const PositionSpan& span) { mask.push(span); };
  GlobalsFilter globals(sight.globals, sight.global_count, sight.last_source, to_mask);
  // Keys of the first of two sources, which all queries see, are in front of what the pattern counts.
  const uint64_t sides = terms.has(schema::TermKind::Sides) ? sight.last_source : 0;
  if (sides != 0) globals.push({0, sides, 1});
  visit_pattern(pattern, head, query - sides, sight.positions - sides,
                [&](const PositionSpan& span) {
                  globals.push({span.first + sides, span.count, span.step});
                });
  globals.finish();
}

}  // namespace oxbow
