#pragma once

// What is composed on top of a pattern: rows of this run that every query sees, and rows that none
// sees. Both take spans in ascending order without doubles and pass such spans on.

#include <cstddef>
#include <cstdint>

#include "ops/attention/patterns/slot_span.h"

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
  /// Row 0 is at slot `first_slot`.
  GlobalsFilter(const uint32_t* list, size_t count, uint64_t first_slot, const Emit& emit)
      : next_(list), end_(list + count), first_slot_(first_slot), emit_(emit) {}

  void push(SlotSpan span) {
    while (span.count != 0) {
      emit_before(span.first);
      // The part of the span up to the next global key, which may be one of its own.
      uint64_t count = span.count;
      while (next_ != end_) {
        const uint64_t offset = first_slot_ + *next_ - span.first;
        if (offset > (span.count - 1) * span.step) break;
        if (offset % span.step == 0) {
          ++next_;
          continue;
        }
        count = offset / span.step + 1;
        break;
      }
      emit_(SlotSpan{span.first, count, span.step});
      span.first += count * span.step;
      span.count -= count;
    }
  }

  void finish() { emit_before(UINT64_MAX); }

 private:
  /// Global keys below this slot, neighbours together.
  void emit_before(uint64_t slot) {
    while (next_ != end_ && first_slot_ + *next_ < slot) {
      const uint64_t first = first_slot_ + *next_;
      uint64_t count = 1;
      for (++next_; next_ != end_ && first + count < slot && first_slot_ + *next_ == first + count;
           ++next_) {
        ++count;
      }
      emit_(SlotSpan{first, count, 1});
    }
  }

  const uint32_t* next_;
  const uint32_t* end_;
  uint64_t first_slot_;
  const Emit& emit_;
};

inline constexpr uint64_t kNoRow = UINT64_MAX;

/// Passes over the rows whose mask is 0; slots before `first_slot` have none.
template <typename Emit>
class MaskFilter {
 public:
  /// `turns` are those of find_turns. `kept`: a row that stays whatever its mask is, or kNoRow.
  MaskFilter(const int32_t* mask, const uint32_t* turns, uint64_t first_slot, uint64_t kept,
             const Emit& emit)
      : mask_(mask), turns_(turns), first_slot_(first_slot), kept_(kept), emit_(emit) {}

  void push(SlotSpan span) const {
    if (span.first < first_slot_) {
      const uint64_t older =
          smaller_slot(span.count, (first_slot_ - span.first + span.step - 1) / span.step);
      emit_(SlotSpan{span.first, older, span.step});
      span.first += older * span.step;
      span.count -= older;
    }
    if (span.count == 0) return;
    if (span.step == 1) {
      push_range(span.first - first_slot_, span.first - first_slot_ + span.count);
    } else {
      push_steps(span);
    }
  }

 private:
  /// Rows [row, end): whole stretches at a time.
  void push_range(uint64_t row, uint64_t end) const {
    while (row < end) {
      const uint64_t turn = smaller_slot(turns_[row], end);
      if (mask_[row] != 0) {
        emit_(SlotSpan{first_slot_ + row, turn - row, 1});
      } else if (row <= kept_ && kept_ < turn) {
        emit_(SlotSpan{first_slot_ + kept_, 1, 1});
      }
      row = turn;
    }
  }

  void push_steps(const SlotSpan& span) const {
    uint64_t row = span.first - first_slot_, seen = 0;
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
    if (count != 0) emit_(SlotSpan{first_slot_ + row - count * step, count, step});
  }

  const int32_t* mask_;
  const uint32_t* turns_;
  uint64_t first_slot_;
  uint64_t kept_;
  const Emit& emit_;
};

}  // namespace oxbow
