#pragma once

// Which keys a query sees: those of its pattern, with rows that every query sees, without rows that none sees,
// and without what is beyond the reach of a term. Each filter takes spans in ascending order without
// doubles and passes such spans on.

#include <cstddef>
#include <cstdint>

#include "ops/attention/params.h"
#include "ops/attention/patterns/span.h"

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

/// Whether a term cuts off what is far away, for each head by itself.
bool has_reach(const AttentionTerms& terms);

/// Whether terms have a say in what is seen, and not the pattern alone.
bool terms_filter(const AttentionTerms& terms);

/// What such terms say in this run of `rows` queries; `positions` and `last_source` are there. A list of blocks becomes a
/// part of the pattern.
Status find_sight(const RunContext& context, const AttentionParams& params, size_t rows,
                  Sight* sight, PatternParams* pattern);

/// Emits what the query at position `query`, which is row `row`, sees with this head by the pattern and by such terms;
/// there are positions.
void visit_seen(const Sight& sight, const PatternParams& pattern, const AttentionTerms& terms,
                size_t head, size_t row, uint64_t query, SpanSink emit);

}  // namespace oxbow
