#include "runtime/text/bpe.h"

#include <algorithm>
#include <cassert>

namespace oxbow {
namespace {

constexpr uint32_t kNoRank = 0xffffffff;
// Up to here looking at all ranks for the lowest takes less time than keeping them in order.
constexpr size_t kFew = 48;

/// What a symbol and the one behind it become.
struct Joined {
  uint32_t rank = kNoRank;
  uint32_t piece = kNoPiece;
};

Joined join(const MergeTable& merges, const Symbol& left, const Symbol& right) {
  if (left.piece == kNoPiece || right.piece == kNoPiece) return {};
  const schema::Merge* merge = merges.find(left.piece, right.piece);
  return merge == nullptr ? Joined() : Joined{merge->rank(), merge->result()};
}

size_t merge_few(const MergeTable& merges, std::span<Symbol> symbols) {
  Joined pairs[kFew];
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = join(merges, symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == kNoRank) break;
    symbols[best] = {pairs[best].piece, symbols[best].bytes + symbols[best + 1].bytes};
    for (size_t i = best + 1; i + 1 < count; ++i) {
      symbols[i] = symbols[i + 1];
      pairs[i] = pairs[i + 1];
    }
    --count;
    if (best + 1 < count) pairs[best] = join(merges, symbols[best], symbols[best + 1]);
    if (best > 0) pairs[best - 1] = join(merges, symbols[best - 1], symbols[best]);
  }
  return count;
}

/// Numbers of which the lowest is wanted again and again: above each 16 of them lies their lowest,
/// above each 16 of these theirs, up to a single one.
class Minimum {
 public:
  static size_t numbers(size_t count) {
    size_t total = 0;
    do {
      count = (count + kFan - 1) / kFan;
      total += count * kFan;
    } while (count > 1);
    return total;
  }

  /// `room` has numbers(count) elements; each is kNoRank then.
  Minimum(uint32_t* room, size_t count) {
    do {
      levels_[depth_++] = room;
      count = (count + kFan - 1) / kFan;
      room = std::fill_n(room, count * kFan, kNoRank);
    } while (count > 1);
  }

  void set(size_t at, uint32_t number) {
    levels_[0][at] = number;
    for (size_t level = 1; level < depth_; ++level) {
      const uint32_t lowest = lowest_of(levels_[level - 1] + at / kFan * kFan);
      at /= kFan;
      if (levels_[level][at] == lowest) return;
      levels_[level][at] = lowest;
    }
  }
  uint32_t lowest() const { return lowest_of(levels_[depth_ - 1]); }
  /// The first place of lowest().
  size_t place() const {
    const uint32_t wanted = lowest();
    size_t at = 0;
    for (size_t level = depth_; level-- > 0;) {
      const uint32_t* group = levels_[level] + at * kFan;
      at = at * kFan + static_cast<size_t>(std::find(group, group + kFan, wanted) - group);
    }
    return at;
  }

 private:
  static constexpr size_t kFan = 16;
  // Enough for 2^32 numbers.
  static constexpr size_t kMaxDepth = 8;

  static uint32_t lowest_of(const uint32_t* group) {
    uint32_t lowest = group[0];
    for (size_t i = 1; i < kFan; ++i) lowest = std::min(lowest, group[i]);
    return lowest;
  }

  uint32_t* levels_[kMaxDepth] = {};
  size_t depth_ = 0;
};

size_t merge_many(const MergeTable& merges, std::span<Symbol> symbols, uint32_t* scratch) {
  const auto count = static_cast<uint32_t>(symbols.size());
  uint32_t* const piece = scratch;
  uint32_t* const next = piece + count;
  uint32_t* const previous = next + count;
  Minimum ranks(previous + count, count);
  const auto look = [&](uint32_t left) {
    const uint32_t right = next[left];
    const Joined joined = right < count ? join(merges, symbols[left], symbols[right]) : Joined();
    piece[left] = joined.piece;
    ranks.set(left, joined.rank);
  };
  for (uint32_t i = 0; i < count; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;
  }
  for (uint32_t i = 0; i < count; ++i) look(i);
  while (ranks.lowest() != kNoRank) {
    const auto left = static_cast<uint32_t>(ranks.place());
    const uint32_t right = next[left];
    symbols[left] = {piece[left], symbols[left].bytes + symbols[right].bytes};
    ranks.set(right, kNoRank);
    next[left] = next[right];
    if (next[left] < count) previous[next[left]] = left;
    look(left);
    if (left > 0) look(previous[left]);
  }
  size_t left_over = 0;
  for (uint32_t i = 0; i < count; i = next[i]) symbols[left_over++] = symbols[i];
  return left_over;
}

}  // namespace

size_t merge_scratch_bytes(size_t max_symbols) {
  if (max_symbols <= kFew) return 0;
  return (3 * max_symbols + Minimum::numbers(max_symbols)) * sizeof(uint32_t);
}

size_t merge_symbols(const MergeTable& merges, std::span<Symbol> symbols,
                     std::span<std::byte> scratch) {
  if (symbols.size() <= kFew) return merge_few(merges, symbols);
  assert(scratch.size() >= merge_scratch_bytes(symbols.size()));
  return merge_many(merges, symbols, reinterpret_cast<uint32_t*>(scratch.data()));
}

}  // namespace oxbow
