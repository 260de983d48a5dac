#pragma once

#include <cstdint>

#include "ops/attention/patterns/params.h"

namespace oxbow {

/// Blocks of `length` positions (BigBird, Zaheer et al. 2020). The first and the last block see everything; another sees
/// itself, its neighbours, the first, the last, and those that a list names, as often as it names them.
struct ListedBlocksPattern {
  uint64_t length = 1;
  uint64_t listed = 0;
  uint64_t full_up_to = 0;
  uint64_t head = 0;
  const int32_t* list = nullptr;

  static ListedBlocksPattern of(const PatternParams& p, uint64_t head) {
    return {p.length, p.listed, p.full_up_to, head, p.list};
  }

  /// Spans are neither in ascending order nor without doubles: needs all keys side by side in memory.
  static constexpr bool kAnyOrder = true;
  static bool depends_on_head(const PatternParams&) { return true; }

  static Status check(BindContext& context, const PatternParams& p, bool /*own*/,
                      size_t /*heads*/) {
    return check_length(context, p);
  }

  template <typename Emit>
  void visit(uint64_t query, uint64_t positions, const Emit& emit) const {
    const uint64_t blocks = (positions + length - 1) / length, block = query / length;
    if (positions <= full_up_to || blocks <= 2 || block == 0 || block + 1 >= blocks) {
      return emit_range(0, positions, emit);
    }
    if (block > 1) emit_block(0, positions, emit);
    emit_range((block - 1) * length, smaller((block + 2) * length, positions), emit);
    if (block + 2 < blocks) emit_block(blocks - 1, positions, emit);
    const uint64_t first = (head * (blocks - 2) + block - 1) * listed;
    for (uint64_t i = 0; i < listed; ++i) {
      emit_block(list == nullptr ? 0 : static_cast<uint64_t>(list[first + i]), positions, emit);
    }
  }

 private:
  template <typename Emit>
  void emit_block(uint64_t block, uint64_t positions, const Emit& emit) const {
    emit_range(block * length, smaller((block + 1) * length, positions), emit);
  }
};

}  // namespace oxbow
