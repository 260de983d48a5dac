#pragma once

// How the op cuts its output into tasks of parallel work; kernels may be tuned to it.

#include <cstddef>
#include <type_traits>

#include "runtime/base/checked.h"
#include "runtime/base/tensor.h"

namespace oxbow {

/// Enough to be worth a thread's while, few enough rows and channels that both stay in the caches.
inline constexpr size_t kTaskChannels = 256;
inline constexpr size_t kTaskRows = 48;
/// So few rows only read weights, which is fastest in tasks as long as the threads allow.
inline constexpr size_t kFewRows = 3;
inline constexpr size_t kFewRowsChannels = 32;
/// few.operator()<rows>() for so few rows, else many().
template <typename Few, typename Many>
[[gnu::always_inline]] inline void by_rows(size_t rows, const Few& few, const Many& many) {
  static_assert(kFewRows == 3);
  switch (rows) {
    case 1:
      return few.template operator()<1>();
    case 2:
      return few.template operator()<2>();
    case 3:
      return few.template operator()<3>();
    default:
      return many();
  }
}

static_assert(kTaskChannels % kBlockRows == 0 && kFewRowsChannels % kBlockRows == 0);

/// Elements, or blocks, before a channel, which is the first of a block.
template <typename W>
constexpr size_t weights_before(size_t channel, size_t depth) {
  if constexpr (std::is_same_v<W, int8_t>) return channel * round_up(depth, kBlockColumns);
  if constexpr (std::is_same_v<W, I4Block> || std::is_same_v<W, I4MinBlock>) {
    return channel / kBlockRows * ceil_div(depth, kI4BlockColumns);
  }
  if constexpr (std::is_same_v<W, TernaryBlock>) {
    return channel / kBlockRows * ceil_div(depth, kTernaryBlockColumns);
  }
  return channel * depth;
}

/// Rows cut into tiles of at most `most` and nearly the same height, so that threads get equal work.
struct RowTiles {
  RowTiles(size_t all, size_t most) : rows(all), count(ceil_div(all, most)) {}
  size_t begin(size_t tile) const { return tile * rows / count; }
  size_t height(size_t tile) const { return begin(tile + 1) - begin(tile); }
  size_t rows, count;
};

}  // namespace oxbow
