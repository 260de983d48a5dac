// AVX-512: as AVX2, but for many rows a register is the eight lanes of two rows' sums, with weights that come twice. The
// order is the same.

#include "ops/common/avx512.h"
#include "ops/linear/float_avx2.h"

namespace oxbow {
namespace {

/// Twelve rows by four channels: two dozen sums, which with the weights fill 28 of 32 registers.
struct Avx512Tiles {
  static constexpr size_t kRows = 12;
  static constexpr size_t kChannels = 4;
  static constexpr size_t kRowPairs = kRows / 2;
  /// They are read half as often as with AVX2: to copy them first costs more.
  static constexpr bool collide(size_t) { return false; }
  using Part = __m512;
  static constexpr size_t parts(size_t rows) { return (rows + 1) / 2; }
  /// Of a tile, pair of rows after pair of rows.
  struct Sums {
    __m512 lanes[kRowPairs][kChannels];
  };
  template <typename W>
  using Tile = void (*)(const Part* x, const W* const (&weight)[kChannels], size_t ahead,
                        __m256* floats, size_t pairs, bool fresh, Sums* sums);

  /// As Avx2Tiles::pack_rows; where a second row is missing there are zeros.
  template <typename Slice>
  static void pack_rows(const Slice& s, size_t row, size_t rows, size_t begin, size_t end,
                        Part* to) {
    const size_t width = parts(rows), whole = begin + (end - begin) / kLanes * kLanes;
    for (size_t p = 0; p < width; ++p) {
      const float* x = s.x + (row + 2 * p) * s.x_stride;
      const bool both = 2 * p + 1 < rows;
      const float* second = both ? x + s.x_stride : x;
      const __mmask16 rows_here = both ? 0xFFFF : 0x00FF;
      __m512* lanes = to + p;
      for (size_t k = begin; k < whole; k += kLanes, lanes += width) {
        const __m512 two = side_by_side(_mm256_loadu_ps(x + k), _mm256_loadu_ps(second + k));
        *lanes = _mm512_maskz_mov_ps(rows_here, two);
      }
      if (whole == end) continue;
      const __m256i here = first_lanes(end - whole);
      const __m512 two = side_by_side(_mm256_maskload_ps(x + whole, here),
                                      _mm256_maskload_ps(second + whole, here));
      *lanes = _mm512_maskz_mov_ps(rows_here, two);
    }
  }

  /// As Avx2Tiles::tile.
  template <typename Weights, size_t kPairs, From kFrom>
  [[gnu::noinline]] static void tile(const Part* x,
                                     const typename Weights::Type* const (&weight)[kChannels],
                                     size_t ahead, __m256* floats, size_t pairs, bool fresh,
                                     Sums* sums) {
    __m512 acc[kPairs][kChannels];
#pragma GCC unroll 8
    for (size_t p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
      for (size_t c = 0; c < kChannels; ++c) {
        acc[p][c] = fresh ? _mm512_setzero_ps() : sums->lanes[p][c];
      }
    }
    const typename Weights::Type* from[kChannels];
#pragma GCC unroll 4
    for (size_t c = 0; c < kChannels; ++c) from[c] = weight[c];
    for (; pairs > 0; --pairs) {
#pragma GCC unroll 4
      for (size_t c = 0; c < kChannels; ++c) {
        if constexpr (kFrom == From::kFloats) {
          prefetch(floats + 2 * c, kPrefetchBytes);
        } else {
          prefetch(from[c] + ahead, 0);
        }
      }
#pragma GCC unroll 2
      for (size_t g = 0; g < 2; ++g) {
        __m512 ws[kChannels];
#pragma GCC unroll 4
        for (size_t c = 0; c < kChannels; ++c) {
          const __m256 w = kFrom == From::kFloats ? *floats : Weights::load(from[c] + g * kLanes);
          if constexpr (kFrom == From::kSliceToFloats) *floats = w;
          if constexpr (kFrom != From::kSlice) ++floats;
          ws[c] = twice(w);
        }
#pragma GCC unroll 8
        for (size_t p = 0; p < kPairs; ++p) add_four_products(x[g * kPairs + p], ws, acc[p]);
      }
      x += 2 * kPairs;
#pragma GCC unroll 4
      for (size_t c = 0; c < kChannels; ++c) from[c] += 2 * kLanes;
    }
    // Zeros where there are no rows: they are combined too.
#pragma GCC unroll 8
    for (size_t p = 0; p < kRowPairs; ++p) {
#pragma GCC unroll 4
      for (size_t c = 0; c < kChannels; ++c) {
        sums->lanes[p][c] = p < kPairs ? acc[p][c] : _mm512_setzero_ps();
      }
    }
  }

  template <typename Weights, From kFrom>
  static constexpr Tile<typename Weights::Type> kTilesOf[kRowPairs] = {
      tile<Weights, 1, kFrom>, tile<Weights, 2, kFrom>, tile<Weights, 3, kFrom>,
      tile<Weights, 4, kFrom>, tile<Weights, 5, kFrom>, tile<Weights, 6, kFrom>};

  static void add_part(const Part* x, size_t rows, size_t channel, __m256 weights, Sums* sums) {
    for (size_t p = 0; p < parts(rows); ++p) {
      __m512& sum = sums->lanes[p][channel];
      sum = _mm512_add_ps(sum, _mm512_mul_ps(x[p], twice(weights)));
    }
  }

  /// Combined, with bias: rows [row, row + rows) of up to four channels.
  template <typename Slice>
  static void store(const Sums& sums, const Slice& s, size_t row, size_t rows, size_t channel) {
    const size_t left = s.channels - channel, count = left < kChannels ? left : kChannels;
    const __mmask8 here = static_cast<__mmask8>((1u << count) - 1);
    const __m128 bias =
        s.bias == nullptr ? _mm_setzero_ps() : _mm_maskz_loadu_ps(here, s.bias + channel);
#pragma GCC unroll 3
    for (size_t p = 0; p < kRowPairs; p += 2) {
      const __m512 results = _mm512_add_ps(combine_four_rows(sums.lanes[p], sums.lanes[p + 1]),
                                           _mm512_broadcast_f32x4(bias));
      for_four_rows(
          results, [&](size_t i, __m128 of_row) __attribute__((always_inline)) {
            if (2 * p + i >= rows) return;
            float* y = s.y + (row + 2 * p + i) * s.y_stride + channel;
            if (count == kChannels) {
              _mm_storeu_ps(y, of_row);
            } else {
              _mm_mask_storeu_ps(y, here, of_row);
            }
          });
    }
  }
};

}  // namespace

void linear_f32_f32_f32_avx512_vnni(const LinearSlice<float, float>& s) {
  FloatLinear<F32Weights, Avx512Tiles>::run(s);
}

}  // namespace oxbow
