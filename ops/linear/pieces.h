#pragma once

// How the op cuts its output into pieces of parallel work; kernels may be tuned to it.

#include <cstddef>

#include "runtime/base/checked.h"
#include "runtime/base/tensor.h"

namespace oxbow {

/// Enough to be worth a thread's while, few enough rows and channels that both stay in the caches.
inline constexpr size_t kPieceChannels = 256;
inline constexpr size_t kPieceRows = 48;
/// So few rows only read weights, which is fastest in pieces as long as the threads allow.
inline constexpr size_t kFewRows = 3;
inline constexpr size_t kFewRowsChannels = 32;
static_assert(kPieceChannels % kBlockRows == 0 && kFewRowsChannels % kBlockRows == 0);

/// Rows cut into tiles of at most `most` and nearly the same height, so that threads get equal work.
struct RowTiles {
  RowTiles(size_t all, size_t most) : rows(all), count(ceil_div(all, most)) {}
  size_t begin(size_t tile) const { return tile * rows / count; }
  size_t height(size_t tile) const { return begin(tile + 1) - begin(tile); }
  size_t rows, count;
};

}  // namespace oxbow
