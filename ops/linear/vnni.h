#pragma once

// int8 . int8 with vpdpbusd, which adds four products of unsigned by signed bytes to each lane of 32 bits,
// without saturation: exact. Weights w become unsigned as w + 128, one xor; what that adds is 128 times the
// sum of x over all columns, which the sums of a row start below zero. Sums may pass the ends of 32 bits on
// the way, which they do without harm: the result fits.
//
// What the instruction sets differ in is given as a struct of static functions, Vectors:
//
//   kBlocks     blocks of eight channels side by side in a vector; many rows
//   kGroups     groups of one block side by side in a vector; a few rows
//   kTileRows   rows of a tile of two vectors, as many as the registers hold
//
// As in avx2.cc a few rows read four distant streams of weights at once, and for many rows the weights
// of a tile are copied, ready for use, by the first tile of a panel, for all others. Everything is in an
// unnamed namespace, so that no copy compiled with these flags gets outside the file that includes this.

#include <immintrin.h>

#include <utility>

#include "ops/linear/linear.h"
#include "ops/linear/tasks.h"
#include "runtime/base/tensor.h"

namespace oxbow {
namespace {

constexpr size_t kBlock = kBlockRows * kBlockColumns;
constexpr size_t kStreams = 4;
/// How far ahead of its use a line of weights is asked for.
constexpr size_t kPrefetchBytes = 1024;
/// What is computed at a time: rows, groups of four columns, and blocks of sums kept meanwhile.
constexpr size_t kPanelRows = 48;
constexpr size_t kPanelGroups = 128;
constexpr size_t kPanelBlocks = 32;
/// Groups of a row side by side in a panel: strips of the rows of a tile alternate, so that what a tile
/// reads at a time lies side by side. Rows are padded to as many columns.
constexpr size_t kStrip = kI8RowAlignment / kBlockColumns;

size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/// Where the sums of a row start.
int32_t start_of(const int8_t* x, size_t columns) {
  int32_t sum = 0;
  for (size_t k = 0; k < columns; ++k) sum += x[k];
  return -128 * sum;
}

template <typename Vectors>
struct VnniLinear {
  using Slice = LinearSlice<int8_t, int8_t>;
  using Vector = typename Vectors::Vector;
  static constexpr size_t kTileRows = Vectors::kTileRows;
  static constexpr size_t kTileVectors = 2;
  static constexpr size_t kTileBlocks = kTileVectors * Vectors::kBlocks;
  static_assert(kPanelGroups % kStrip == 0 && kPanelBlocks % kTileBlocks == 0);

  /// sums[row][stream] of the blocks that lie `distance` bytes apart from `weight` on.
  template <size_t kRows, size_t kBlocks>
  [[gnu::noinline]] static void few_rows_tile(const int8_t* x, size_t x_stride,
                                              const int32_t* starts, const int8_t* weight,
                                              size_t distance, size_t groups,
                                              __m256i (*sums)[kStreams]) {
    constexpr size_t kGroups = Vectors::kGroups;
    Vector acc[kRows][kBlocks];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t b = 0; b < kBlocks; ++b) acc[r][b] = Vectors::zero();
    }
    const auto add_groups = [&](size_t g, size_t count) __attribute__((always_inline)) {
      Vector columns[kRows];
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        columns[r] = Vectors::columns_of(x + r * x_stride + g * kBlockColumns, count);
      }
#pragma GCC unroll 4
      for (size_t b = 0; b < kBlocks; ++b) {
        const Vector codes = Vectors::groups_of(weight + b * distance + g * kBlock, count);
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) {
          acc[r][b] = Vectors::add_products(acc[r][b], codes, columns[r]);
        }
      }
    };
    size_t g = 0;
    for (; g + 2 <= groups; g += 2) {
#pragma GCC unroll 4
      for (size_t b = 0; b < kBlocks; ++b) {
        _mm_prefetch(
            reinterpret_cast<const char*>(weight + b * distance + g * kBlock) + kPrefetchBytes,
            _MM_HINT_T0);
      }
#pragma GCC unroll 2
      for (size_t i = 0; i < 2; i += kGroups) add_groups(g + i, kGroups);
    }
    if (g < groups) add_groups(g, 1);
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t b = 0; b < kBlocks; ++b) {
        sums[r][b] = _mm256_add_epi32(Vectors::sum_groups(acc[r][b]), _mm256_set1_epi32(starts[r]));
      }
    }
  }

  /// sums[row][block], kPanelBlocks to a row, += x . weight over `groups` groups, or = if `starts` are
  /// given. The first tile of a panel also copies its weights, from blocks `stride` bytes apart, of
  /// which `blocks` are there.
  template <size_t kRows, bool kCopy>
  [[gnu::noinline]] static void many_rows_tile(const int8_t* x, const int8_t* codes, size_t stride,
                                               size_t blocks, Vector* weight, size_t groups,
                                               const int32_t* starts, __m256i* sums) {
    Vector acc[kRows][kTileVectors];
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (size_t v = 0; v < kTileVectors; ++v) {
        acc[r][v] = starts != nullptr
                        ? Vectors::fill(starts[r])
                        : Vectors::load(sums + r * kPanelBlocks + v * Vectors::kBlocks);
      }
    }
    // Of blocks that are not there the last is taken again.
    const auto block = [=](size_t b) { return codes + (b < blocks ? b : blocks - 1) * stride; };
    const int8_t* block_codes[kTileBlocks];
#pragma GCC unroll 4
    for (size_t b = 0; b < kTileBlocks; ++b) block_codes[b] = block(b);
    size_t at = 0;
    for (; groups > 0; x += kRows * kStrip * kBlockColumns) {
      const size_t strip = smaller(groups, kStrip);
      groups -= strip;
      for (size_t i = 0; i < strip; ++i, weight += kTileVectors, at += kBlock) {
        if constexpr (kCopy) {
#pragma GCC unroll 2
          for (size_t v = 0; v < kTileVectors; ++v) {
            weight[v] = Vectors::blocks_of(block_codes + v * Vectors::kBlocks, at);
          }
          // The same of the next blocks.
#pragma GCC unroll 4
          for (size_t b = 0; b < kTileBlocks; ++b) {
            _mm_prefetch(reinterpret_cast<const char*>(block_codes[b]) + at + kTileBlocks * stride,
                         _MM_HINT_T0);
          }
        }
        const Vector weight0 = weight[0], weight1 = weight[1];
#pragma GCC unroll 16
        for (size_t r = 0; r < kRows; ++r) {
          const Vector columns = Vectors::column_of(x + (r * kStrip + i) * kBlockColumns);
          acc[r][0] = Vectors::add_products(acc[r][0], weight0, columns);
          acc[r][1] = Vectors::add_products(acc[r][1], weight1, columns);
        }
      }
    }
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (size_t v = 0; v < kTileVectors; ++v) {
        Vectors::store(sums + r * kPanelBlocks + v * Vectors::kBlocks, acc[r][v]);
      }
    }
  }

  using ManyRowsTile = decltype(&many_rows_tile<1, false>);
  struct ManyRowsTiles {
    ManyRowsTile of_rows[kTileRows];
  };
  template <bool kCopy, size_t... kIndex>
  static constexpr ManyRowsTiles many_rows_tiles(std::index_sequence<kIndex...>) {
    return {{many_rows_tile<kIndex + 1, kCopy>...}};
  }

  /// sum * (x_scale * weight_scale) + bias for the channels of one block.
  static void store_block(__m256i sums, const Slice& s, size_t row, size_t channel) {
    float* y = s.y + row * s.y_stride + channel;
    const size_t count = s.channels - channel;
    if (count >= kBlockRows) {
      const __m256 scales = _mm256_mul_ps(_mm256_set1_ps(s.x_scales[row]),
                                          _mm256_loadu_ps(s.weight_scales + channel));
      const __m256 bias =
          s.bias == nullptr ? _mm256_setzero_ps() : _mm256_loadu_ps(s.bias + channel);
      _mm256_storeu_ps(y, _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sums), scales), bias));
      return;
    }
    alignas(32) int32_t lanes[kBlockRows];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sums);
    for (size_t c = 0; c < count; ++c) {
      const float scale = s.x_scales[row] * s.weight_scales[channel + c];
      y[c] =
          static_cast<float>(lanes[c]) * scale + (s.bias == nullptr ? 0.0f : s.bias[channel + c]);
    }
  }

  template <size_t kRows>
  static void few_rows(const Slice& s) {
    const size_t groups = (s.depth + kBlockColumns - 1) / kBlockColumns;
    const size_t stride = groups * kBlock;
    const size_t blocks = (s.channels + kBlockRows - 1) / kBlockRows;
    const size_t length = blocks / kStreams;
    int32_t starts[kRows];
    for (size_t r = 0; r < kRows; ++r) {
      starts[r] = start_of(s.x + r * s.x_stride, groups * kBlockColumns);
    }
    __m256i sums[kRows][kStreams];
    for (size_t i = 0; i < length; ++i) {
      // Needed after the sums: to wait for them then would stop the streams.
      for (size_t b = 0; b < kStreams; ++b) {
        const size_t channel = (i + b * length) * kBlockRows;
        _mm_prefetch(reinterpret_cast<const char*>(s.weight_scales + channel), _MM_HINT_T0);
        if (s.bias != nullptr) {
          _mm_prefetch(reinterpret_cast<const char*>(s.bias + channel), _MM_HINT_T0);
        }
      }
      few_rows_tile<kRows, kStreams>(s.x, s.x_stride, starts, s.weight + i * stride,
                                     length * stride, groups, sums);
      for (size_t r = 0; r < kRows; ++r) {
        for (size_t b = 0; b < kStreams; ++b) {
          store_block(sums[r][b], s, r, (i + b * length) * kBlockRows);
        }
      }
    }
    for (size_t i = kStreams * length; i < blocks; ++i) {
      few_rows_tile<kRows, 1>(s.x, s.x_stride, starts, s.weight + i * stride, 0, groups, sums);
      for (size_t r = 0; r < kRows; ++r) store_block(sums[r][0], s, r, i * kBlockRows);
    }
  }

  /// Rows [row, row + rows) of the panel's blocks, in parts of the depth.
  static void sum_panel(const Slice& s, size_t row, size_t rows, const int32_t* starts,
                        size_t block, size_t blocks, __m256i* sums) {
    static constexpr auto kFirstTiles =
        many_rows_tiles<true>(std::make_index_sequence<kTileRows>());
    static constexpr auto kOtherTiles =
        many_rows_tiles<false>(std::make_index_sequence<kTileRows>());
    const size_t groups = (s.depth + kBlockColumns - 1) / kBlockColumns;
    const size_t stride = groups * kBlock;
    // Tiles of nearly the same height: a low one at the end would waste more.
    const size_t tiles = (rows + kTileRows - 1) / kTileRows;
    const auto tile_begin = [=](size_t tile) { return tile * rows / tiles; };
    alignas(64) int8_t x[kPanelRows * kPanelGroups * kBlockColumns];
    Vector weight[kPanelGroups * kTileVectors];
    for (size_t g = 0; g < groups; g += kPanelGroups) {
      const size_t part = smaller(kPanelGroups, groups - g);
      const size_t strips = (part + kStrip - 1) / kStrip;
      for (size_t t = 0; t < tiles; ++t) {
        const size_t begin = tile_begin(t), height = tile_begin(t + 1) - begin;
        for (size_t r = 0; r < height; ++r) {
          const int8_t* from = s.x + (row + begin + r) * s.x_stride + g * kBlockColumns;
          int8_t* to = x + (begin * strips + r) * kI8RowAlignment;
          for (size_t i = 0; i < strips; ++i) {
            _mm_store_si128(
                reinterpret_cast<__m128i*>(to + i * height * kI8RowAlignment),
                _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * kI8RowAlignment)));
          }
        }
      }
      for (size_t b = 0; b < blocks; b += kTileBlocks) {
        const int8_t* codes = s.weight + (block + b) * stride + g * kBlock;
        for (size_t t = 0; t < tiles; ++t) {
          const size_t begin = tile_begin(t), height = tile_begin(t + 1) - begin;
          const auto tile = (t == 0 ? kFirstTiles : kOtherTiles).of_rows[height - 1];
          tile(x + begin * strips * kI8RowAlignment, codes, stride, blocks - b, weight, part,
               g == 0 ? starts + begin : nullptr, sums + begin * kPanelBlocks + b);
        }
      }
    }
  }

  static void many_rows(const Slice& s) {
    const size_t blocks = (s.channels + kBlockRows - 1) / kBlockRows;
    const size_t columns = (s.depth + kBlockColumns - 1) / kBlockColumns * kBlockColumns;
    alignas(64) __m256i sums[kPanelRows * kPanelBlocks];
    int32_t starts[kPanelRows];
    for (size_t m = 0; m < s.rows; m += kPanelRows) {
      const size_t rows = smaller(kPanelRows, s.rows - m);
      for (size_t r = 0; r < rows; ++r) starts[r] = start_of(s.x + (m + r) * s.x_stride, columns);
      for (size_t n = 0; n < blocks; n += kPanelBlocks) {
        const size_t panel = smaller(kPanelBlocks, blocks - n);
        sum_panel(s, m, rows, starts, n, panel, sums);
        for (size_t r = 0; r < rows; ++r) {
          for (size_t b = 0; b < panel; ++b) {
            store_block(sums[r * kPanelBlocks + b], s, m + r, (n + b) * kBlockRows);
          }
        }
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
