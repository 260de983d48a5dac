#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// Blocks of `length` positions (BigBird, Zaheer et al. 2020). The first and the last block see everything; another sees
/// itself, its neighbours, the first, the last, and those that a list names, as often as it names them.
struct ListedBlocksPattern {
  /// Spans are neither in ascending order nor without doubles: needs all keys side by side in memory.
  static constexpr bool kAnyOrder = true;
  static bool depends_on_head(const PatternParams&) { return true; }

  static Status check(BindContext& context, const PatternParams& p, bool /*own*/,
                      size_t /*heads*/) {
    return check_length(context, p);
  }

  static void visit(const PatternParams& p, uint64_t head, uint64_t query, uint64_t positions,
                    SpanSink emit) {
    const uint64_t length = p.length;
    const uint64_t blocks = (positions + length - 1) / length, block = query / length;
    if (positions <= p.full_up_to || blocks <= 2 || block == 0 || block + 1 >= blocks) {
      return emit_range(0, positions, emit);
    }
    const auto emit_block = [&](uint64_t other) {
      emit_range(other * length, smaller((other + 1) * length, positions), emit);
    };
    if (block > 1) emit_block(0);
    emit_range((block - 1) * length, smaller((block + 2) * length, positions), emit);
    if (block + 2 < blocks) emit_block(blocks - 1);
    const uint64_t first = (head * (blocks - 2) + block - 1) * p.listed;
    for (uint64_t i = 0; i < p.listed; ++i) {
      emit_block(p.list == nullptr ? 0 : static_cast<uint64_t>(p.list[first + i]));
    }
  }
};

}  // namespace oxbow
