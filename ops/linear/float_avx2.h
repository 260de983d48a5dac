#pragma once

// Float rows by weights that become floats in registers, with AVX2. A register is the eight lanes of one sum, so
// that the order is the reference's; speed comes from several sums at once. Lanes past the end of a row add +0, which
// leaves any sum that began as +0 as it is.
//
// What the types of weights differ in is given as a struct of static functions, Weights:
//
//   Type                 of an element
//   load(w)              eight of them
//   load_some(w, count)  the first `count` of eight, then zeros
//   kCostly              whether to load them is more than to read them
//
// A few rows only read weights: distant streams of them at once, which memory serves at a higher rate than neighbours.
//
// Many rows: six by two channels, whose twelve sums fill the registers, or what Tiles has in their place. The rows of a
// tile lie in the first cache, one beside the other, while some channels pass, and these stay in the second cache while
// the tiles of rows pass. Where it pays the first of these tiles leaves the channels as floats, one beside the other, for
// the next. A long row is taken in parts.
//
// Everything is in an unnamed namespace, so that no copy compiled with these flags gets outside the file that
// includes this.

#include <immintrin.h>

#include "ops/linear/linear.h"
#include "ops/linear/tasks.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

inline __m256i first_lanes(size_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline __m128 fold(__m256 lanes) {
  return _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
}
inline __m128 fold_two(__m128 a, __m128 b) {
  return _mm_add_ps(_mm_movelh_ps(a, b), _mm_movehl_ps(b, a));
}
inline __m256 fold_two(__m256 a, __m256 b) {
  return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE));
}

/// combine_sums of four registers.
inline __m128 combine_four(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m128 ab = fold_two(fold(a), fold(b)), cd = fold_two(fold(c), fold(d));
  return _mm_add_ps(_mm_shuffle_ps(ab, cd, 0x88), _mm_shuffle_ps(ab, cd, 0xDD));
}

/// combine_sums of eight registers.
inline __m256 combine_eight(const __m256* sums) {
  __m256 folded[4];
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
    folded[i] = _mm256_add_ps(_mm256_permute2f128_ps(sums[i], sums[i + 4], 0x20),
                              _mm256_permute2f128_ps(sums[i], sums[i + 4], 0x31));
  }
  const __m256 ab = fold_two(folded[0], folded[1]), cd = fold_two(folded[2], folded[3]);
  return _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x88), _mm256_shuffle_ps(ab, cd, 0xDD));
}

/// acc[c] += x * w[c] for two channels. In this order the core keeps its pipes busiest, and in these registers twelve
/// sums fit without a move; compilers keep neither.
[[gnu::always_inline]] inline void add_two_products(__m256 x, const __m256 (&w)[2],
                                                    __m256 (&acc)[2]) {
  __m256 products;
  asm("vmulps %4, %2, %3\n\t"
      "vmulps %5, %2, %2\n\t"
      "vaddps %3, %0, %0\n\t"
      "vaddps %2, %1, %1"
      : "+x"(acc[0]), "+x"(acc[1]), "+x"(x), "=&x"(products)
      : "x"(w[0]), "x"(w[1]));
}

struct F32Weights {
  using Type = float;
  static constexpr bool kCostly = false;
  static __m256 load(const float* w) { return _mm256_loadu_ps(w); }
  static __m256 load_some(const float* w, size_t count) {
    return _mm256_maskload_ps(w, first_lanes(count));
  }
};

/// Where a tile has its weights from: the slice, perhaps to leave them as floats, or those floats.
enum class From { kSlice, kSliceToFloats, kFloats };

/// How far ahead of its use a line of weights is asked for where they lie side by side.
constexpr size_t kPrefetchBytes = 512;

inline void prefetch(const void* from, size_t bytes) {
  _mm_prefetch(static_cast<const char*>(from) + bytes, _MM_HINT_T0);
}

/// Tiles of six rows by two channels. Another instruction set may have its own, with the same members.
struct Avx2Tiles {
  static constexpr size_t kRows = 6;
  static constexpr size_t kChannels = 2;
  /// Whether channels that lie so many bytes apart compete for the same lines of the first cache, to its cost.
  static constexpr bool collide(size_t bytes) { return bytes % 4096 == 0; }
  /// What lies of a group of eight columns, one for each row.
  using Part = __m256;
  static constexpr size_t parts(size_t rows) { return rows; }
  /// Of a tile, row after row.
  struct Sums {
    __m256 lanes[kRows][kChannels];
  };
  template <typename W>
  using Tile = void (*)(const Part* x, const W* const (&weight)[kChannels], size_t ahead,
                        __m256* floats, size_t pairs, bool fresh, Sums* sums);

  /// Columns [begin, end) of rows [row, row + rows), group after group; the rows of a group lie side by side.
  template <typename Slice>
  static void pack_rows(const Slice& s, size_t row, size_t rows, size_t begin, size_t end,
                        Part* to) {
    for (size_t r = 0; r < rows; ++r) {
      const float* x = s.x + (row + r) * s.x_stride;
      __m256* lanes = to + r;
      size_t k = begin;
      for (; k + kLanes <= end; k += kLanes, lanes += rows) *lanes = _mm256_loadu_ps(x + k);
      if (k < end) *lanes = _mm256_maskload_ps(x + k, first_lanes(end - k));
    }
  }

  /// sums += x . weight over pairs of groups, or = if `fresh`; of each channel the next of its place lies `ahead`
  /// elements behind it. With more than this one loop GCC keeps sums in memory.
  template <typename Weights, size_t kTileRows, From kFrom>
  [[gnu::noinline]] static void tile(const Part* x,
                                     const typename Weights::Type* const (&weight)[kChannels],
                                     size_t ahead, __m256* floats, size_t pairs, bool fresh,
                                     Sums* sums) {
    __m256 acc[kTileRows][kChannels];
#pragma GCC unroll 8
    for (size_t r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 2
      for (size_t c = 0; c < kChannels; ++c) {
        acc[r][c] = fresh ? _mm256_setzero_ps() : sums->lanes[r][c];
      }
    }
    const auto *first = weight[0], *second = weight[1];
    for (; pairs > 0; --pairs) {
      if constexpr (kFrom == From::kFloats) {
        prefetch(floats, kPrefetchBytes);
        prefetch(floats + 2, kPrefetchBytes);
      } else {
        prefetch(first + ahead, 0);
        prefetch(second + ahead, 0);
      }
#pragma GCC unroll 2
      for (size_t g = 0; g < 2; ++g) {
        __m256 ws[kChannels];
        if constexpr (kFrom == From::kFloats) {
          ws[0] = *floats++;
          ws[1] = *floats++;
        } else {
          ws[0] = Weights::load(first + g * kLanes);
          ws[1] = Weights::load(second + g * kLanes);
        }
        if constexpr (kFrom == From::kSliceToFloats) {
          *floats++ = ws[0];
          *floats++ = ws[1];
        }
#pragma GCC unroll 8
        for (size_t r = 0; r < kTileRows; ++r) add_two_products(x[g * kTileRows + r], ws, acc[r]);
      }
      x += 2 * kTileRows;
      first += 2 * kLanes;
      second += 2 * kLanes;
    }
    // Zeros where there are no rows: they are combined too.
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (size_t c = 0; c < kChannels; ++c) {
        sums->lanes[r][c] = r < kTileRows ? acc[r][c] : _mm256_setzero_ps();
      }
    }
  }

  template <typename Weights, From kFrom>
  static constexpr Tile<typename Weights::Type> kTilesOf[kRows] = {
      tile<Weights, 1, kFrom>, tile<Weights, 2, kFrom>, tile<Weights, 3, kFrom>,
      tile<Weights, 4, kFrom>, tile<Weights, 5, kFrom>, tile<Weights, 6, kFrom>};

  static void add_part(const Part* x, size_t rows, size_t channel, __m256 weights, Sums* sums) {
    for (size_t r = 0; r < rows; ++r) {
      __m256& sum = sums->lanes[r][channel];
      sum = _mm256_add_ps(sum, _mm256_mul_ps(x[r], weights));
    }
  }

  /// Combined, with bias: rows [row, row + rows) of one or two channels.
  template <typename Slice>
  static void store(const Sums& sums, const Slice& s, size_t row, size_t rows, size_t channel) {
    const bool both = channel + 1 < s.channels;
    __m128 bias = _mm_setzero_ps();
    if (s.bias != nullptr) {
      const float first = s.bias[channel], second = both ? s.bias[channel + 1] : 0.0f;
      bias = _mm_setr_ps(first, second, first, second);
    }
    float* y = s.y + row * s.y_stride + channel;
    const auto store_row = [&](__m128 two) __attribute__((always_inline)) {
      if (both) {
        _mm_storel_pi(reinterpret_cast<__m64*>(y), two);
      } else {
        _mm_store_ss(y, two);
      }
      y += s.y_stride;
    };
    const __m256* lanes = sums.lanes[0];
    const __m256 eight = combine_eight(lanes);
    const __m128 fours[] = {_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1),
                            combine_four(lanes[8], lanes[9], lanes[10], lanes[11])};
#pragma GCC unroll 3
    for (size_t r = 0; r < kRows; r += 2) {
      const __m128 results = _mm_add_ps(fours[r / 2], bias);
      if (r < rows) store_row(results);
      if (r + 1 < rows) store_row(_mm_movehl_ps(results, results));
    }
  }
};

template <typename Weights, typename Tiles = Avx2Tiles>
struct FloatLinear {
  using W = typename Weights::Type;
  using Slice = LinearSlice<float, W>;
  using Part = typename Tiles::Part;
  using Sums = typename Tiles::Sums;

  static constexpr size_t kStreams = 4;
  static constexpr size_t kTileRows = Tiles::kRows;
  static constexpr size_t kTileChannels = Tiles::kChannels;
  /// What is computed at a time: rows, groups of eight columns, and channels, as they lie in the slice or as floats.
  static constexpr size_t kPanelRows = 48;
  static constexpr size_t kPanelGroups = 64;
  static constexpr size_t kSliceChannels = 64;
  static constexpr size_t kFloatChannels = 32;

  /// sums[row][stream] of the channels that lie `distance` elements apart from `weight` on.
  template <size_t kRows, size_t kChannels>
  [[gnu::noinline]] static void few_rows_tile(const float* x, size_t x_stride, const W* weight,
                                              size_t distance, size_t depth,
                                              __m256 (&sums)[kRows][kChannels]) {
    __m256 acc[kRows][kChannels];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t b = 0; b < kChannels; ++b) acc[r][b] = _mm256_setzero_ps();
    }
    const auto add = [&](const __m256(&xs)[kRows], size_t b, __m256 ws)
        __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        acc[r][b] = _mm256_add_ps(acc[r][b], _mm256_mul_ps(xs[r], ws));
      }
    };
    const auto add_group = [&](size_t i) __attribute__((always_inline)) {
      __m256 xs[kRows];
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) xs[r] = _mm256_loadu_ps(x + r * x_stride + i);
#pragma GCC unroll 4
      for (size_t b = 0; b < kChannels; ++b) add(xs, b, Weights::load(weight + b * distance + i));
    };
    // As many groups as leave the sums in registers.
    constexpr size_t kGroups = kRows < 3 ? 2 : 1;
    size_t i = 0;
    for (; i + kGroups * kLanes <= depth; i += kGroups * kLanes) {
#pragma GCC unroll 4
      for (size_t b = 0; b < kChannels; ++b) prefetch(weight + b * distance + i, kPrefetchBytes);
#pragma GCC unroll 2
      for (size_t g = 0; g < kGroups; ++g) add_group(i + g * kLanes);
    }
    if (kGroups > 1 && i + kLanes <= depth) {
      add_group(i);
      i += kLanes;
    }
    if (i < depth) {
      __m256 xs[kRows];
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        xs[r] = _mm256_maskload_ps(x + r * x_stride + i, first_lanes(depth - i));
      }
#pragma GCC unroll 4
      for (size_t b = 0; b < kChannels; ++b) {
        add(xs, b, Weights::load_some(weight + b * distance + i, depth - i));
      }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t b = 0; b < kChannels; ++b) sums[r][b] = acc[r][b];
    }
  }

  template <size_t kRows>
  static void few_rows(const Slice& s) {
    const size_t length = s.channels / kStreams;
    const auto bias_of = [&](size_t n) { return s.bias == nullptr ? 0.0f : s.bias[n]; };
    for (size_t i = 0; i < length; ++i) {
      __m256 sums[kRows][kStreams];
      few_rows_tile<kRows, kStreams>(s.x, s.x_stride, s.weight + i * s.depth, length * s.depth,
                                     s.depth, sums);
      for (size_t r = 0; r < kRows; ++r) {
        alignas(16) float results[kStreams];
        _mm_store_ps(results, combine_four(sums[r][0], sums[r][1], sums[r][2], sums[r][3]));
        for (size_t b = 0; b < kStreams; ++b) {
          const size_t n = i + b * length;
          s.y[r * s.y_stride + n] = results[b] + bias_of(n);
        }
      }
    }
    for (size_t n = kStreams * length; n < s.channels; ++n) {
      __m256 sums[kRows][1];
      few_rows_tile<kRows, 1>(s.x, s.x_stride, s.weight + n * s.depth, 0, s.depth, sums);
      for (size_t r = 0; r < kRows; ++r) {
        const __m256 sum = sums[r][0];
        s.y[r * s.y_stride + n] = _mm_cvtss_f32(combine_four(sum, sum, sum, sum)) + bias_of(n);
      }
    }
  }

  /// The products of the columns that are left, fewer than a pair of groups.
  static void add_rest(const Part* x, const W* const (&weight)[kTileChannels], size_t from,
                       size_t columns, size_t rows, Sums* sums) {
    for (size_t i = 0; i < columns; i += kLanes, x += Tiles::parts(rows)) {
      const size_t count = columns - i < kLanes ? columns - i : kLanes;
      for (size_t c = 0; c < kTileChannels; ++c) {
        Tiles::add_part(x, rows, c, Weights::load_some(weight[c] + from + i, count), sums);
      }
    }
  }

  /// Rows [row, row + rows) of channels [channel, channel + channels).
  static void panel(const Slice& s, size_t row, size_t rows, size_t channel, size_t channels,
                    bool to_floats) {
    // Sums of all tiles, or weights as floats and then the sums.
    constexpr size_t kTiles = kPanelRows / kTileRows;
    constexpr size_t kSums = kTiles * kSliceChannels / kTileChannels;
    constexpr size_t kFloats = kFloatChannels * kPanelGroups;
    constexpr size_t kSumsBesideFloats = kTiles * kFloatChannels / kTileChannels;
    union {
      Sums sums[kSums];
      struct {
        __m256 weights[kFloats];
        Sums sums[kSumsBesideFloats];
      } floats;
    } room;
    Sums* const sums = to_floats ? room.floats.sums : room.sums;
    Part x[Tiles::parts(kTileRows) * kPanelGroups];

    const RowTiles tiles(rows, kTileRows);
    const size_t parts = ceil_div(s.depth, kPanelGroups * kLanes);
    const size_t part = round_up(ceil_div(s.depth, parts), 2 * kLanes);
    for (size_t begin = 0; begin < s.depth; begin += part) {
      const size_t end = begin + part < s.depth ? begin + part : s.depth;
      const size_t pairs = (end - begin) / (2 * kLanes), whole = begin + pairs * 2 * kLanes;
      // With one part only, all tiles use the same sums.
      Sums* at = sums;
      for (size_t t = 0; t < tiles.count; ++t) {
        const size_t height = tiles.height(t), first = row + tiles.begin(t);
        const size_t width = Tiles::parts(height);
        const auto& run_tile =
            to_floats && t > 0 ? Tiles::template kTilesOf<Weights, From::kFloats>[width - 1]
            : to_floats        ? Tiles::template kTilesOf<Weights, From::kSliceToFloats>[width - 1]
                               : Tiles::template kTilesOf<Weights, From::kSlice>[width - 1];
        Tiles::pack_rows(s, first, height, begin, end, x);
        for (size_t c = 0; c < channels; c += kTileChannels) {
          const size_t n = channel + c;
          // Channels that are not there are the last one again.
          const W* weight[kTileChannels];
          for (size_t i = 0; i < kTileChannels; ++i) {
            const size_t at_most = n + i < s.channels ? n + i : s.channels - 1;
            weight[i] = s.weight + at_most * s.depth + begin;
          }
          run_tile(x, weight, kTileChannels * s.depth,
                   to_floats ? room.floats.weights + c * 2 * pairs : nullptr, pairs, begin == 0,
                   at);
          if (end == s.depth) {
            add_rest(x + 2 * pairs * width, weight, whole - begin, end - whole, height, at);
            Tiles::store(*at, s, first, height, n);
          }
          if (parts > 1) ++at;
        }
      }
    }
  }

  static void many_rows(const Slice& s) {
    const bool to_floats =
        s.rows > kTileRows && (Weights::kCostly || Tiles::collide(s.depth * sizeof(W)));
    // One part of the depth needs no room for sums.
    const size_t most = to_floats                         ? kFloatChannels
                        : s.depth > kPanelGroups * kLanes ? kSliceChannels
                                                          : s.channels;
    for (size_t m = 0; m < s.rows; m += kPanelRows) {
      const size_t rows = s.rows - m < kPanelRows ? s.rows - m : kPanelRows;
      for (size_t n = 0; n < s.channels; n += most) {
        panel(s, m, rows, n, s.channels - n < most ? s.channels - n : most, to_floats);
      }
    }
  }

  static void run(const Slice& s) {
    by_rows(
        s.rows, [&]<size_t kRows>() { few_rows<kRows>(s); }, [&] { many_rows(s); });
  }
};

}  // namespace
}  // namespace oxbow
