// AVX512-VNNI: stored codes, 0 to 15, by x, four products in an instruction. A register has sixteen channels by four
// columns for many rows, and for one row eight channels by eight columns, as they lie in memory.

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 finds fault with its own header, which leaves vectors undefined on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include "ops/linear/low_bits.h"

namespace oxbow {
namespace {

/// Blocks that are read at once for a single row.
constexpr size_t kStreams = 4;
constexpr size_t kTileRows = 12;
constexpr size_t kQuads = 4;
/// Blocks of columns there is room for; of deeper matrices there are few.
constexpr size_t kMostBlocks = 512;

/// Rows of x in whole blocks of columns, with what is to be added to the sum of each, or, where there are mins, the sum of
/// x.
struct CodeRows {
  const int8_t* x;
  size_t x_stride;
  /// Of these blocks x has all columns; behind them may be one that `last` has.
  size_t whole;
  size_t blocks;
  int8_t last[kTileRows][kI4BlockColumns];
  int32_t offsets[kTileRows][kMostBlocks];
  BlockScales scales;

  [[gnu::always_inline]] const int8_t* columns(size_t row, size_t block) const {
    return block < whole ? x + row * x_stride + block * kI4BlockColumns : last[row];
  }
};

int32_t sum_of(const int8_t* x) {
  const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  const __m256i fours = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), codes);
  __m128i sums = _mm_add_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
  sums = _mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_shuffle_epi32(sums, 0xb1)));
}

template <typename Block>
void take_rows(const LinearSlice<int8_t, Block>& s, size_t first, size_t rows, CodeRows* taken) {
  taken->x = s.x + first * s.x_stride;
  taken->x_stride = s.x_stride;
  taken->scales = block_scales(s, first);
  taken->whole = s.depth / kI4BlockColumns;
  taken->blocks = (s.depth + kI4BlockColumns - 1) / kI4BlockColumns;
  for (size_t r = 0; r < rows; ++r) {
    if (const size_t rest = s.depth % kI4BlockColumns; rest != 0) {
      __builtin_memset(taken->last[r], 0, kI4BlockColumns);
      __builtin_memcpy(taken->last[r], taken->x + r * s.x_stride + s.depth - rest, rest);
    }
    for (size_t b = 0; b < taken->blocks; ++b) {
      taken->offsets[r][b] = (kHasMin<Block> ? 1 : -kI4Offset) * sum_of(taken->columns(r, b));
    }
  }
}

[[gnu::always_inline]] inline int32_t four_of(const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, sizeof(four));
  return four;
}

[[gnu::always_inline]] inline __m512i lower(__m512i codes) {
  return _mm512_and_si512(codes, _mm512_set1_epi8(15));
}
[[gnu::always_inline]] inline __m512i upper(__m512i codes) {
  return lower(_mm512_srli_epi16(codes, 4));
}

[[gnu::always_inline]] inline __m128i load_eight(const F16* halves) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(halves));
}

/// acc * row_scale + bias for the channels of one block.
template <typename Block>
void store(const LinearSlice<int8_t, Block>& s, size_t row, size_t channel, __m256 acc) {
  const size_t count = s.channels - channel;
  const auto mask = static_cast<__mmask8>(count >= kBlockRows ? 0xff : (1u << count) - 1);
  const __m256 scaled = _mm256_mul_ps(acc, _mm256_set1_ps(row_scale(s, row)));
  const __m256 bias =
      s.bias == nullptr ? _mm256_setzero_ps() : _mm256_maskz_loadu_ps(mask, s.bias + channel);
  _mm256_mask_storeu_ps(s.y + row * s.y_stride + channel, mask, _mm256_add_ps(scaled, bias));
}

/// One row by kBlocks blocks of channels, `distance` blocks apart.
template <typename Block, size_t kBlocks>
[[gnu::noinline]] void one_row(const CodeRows& x, const Block* weight, size_t distance,
                               __m256* sums) {
  __m256 acc[kBlocks];
#pragma GCC unroll 4
  for (__m256& sum : acc) sum = _mm256_setzero_ps();
  for (size_t g = 0; g < x.blocks; ++g) {
    const int8_t* columns = x.columns(0, g);
    // Two fours of columns, for the channels of a block each.
    const auto two_fours = [&](size_t first) __attribute__((always_inline)) {
      return _mm512_mask_set1_epi32(_mm512_set1_epi32(four_of(columns + first)), 0xff00,
                                    four_of(columns + first + 4));
    };
    const __m512i x0 = two_fours(0), x1 = two_fours(8), x2 = two_fours(16), x3 = two_fours(24);
    const __m512i offset = kHasMin<Block>
                               ? _mm512_setzero_si512()
                               : _mm512_zextsi256_si512(_mm256_set1_epi32(x.offsets[0][g]));
    const __m256 x_scale = _mm256_set1_ps(x.scales.of(0, g));
#pragma GCC unroll 4
    for (size_t b = 0; b < kBlocks; ++b) {
      const Block& block = weight[b * distance + g];
      const __m512i codes0 = _mm512_loadu_si512(block.codes);
      const __m512i codes1 = _mm512_loadu_si512(block.codes + 64);
      __m512i first = _mm512_dpbusd_epi32(offset, lower(codes0), x0);
      __m512i second = _mm512_dpbusd_epi32(_mm512_setzero_si512(), lower(codes1), x1);
      first = _mm512_dpbusd_epi32(first, upper(codes0), x2);
      second = _mm512_dpbusd_epi32(second, upper(codes1), x3);
      const __m512i both = _mm512_add_epi32(first, second);
      const __m256i all =
          _mm256_add_epi32(_mm512_castsi512_si256(both), _mm512_extracti64x4_epi64(both, 1));
      const __m256 scales = _mm256_maskz_cvtph_ps(0xff, load_eight(block.scales));
      __m256 part = _mm256_mul_ps(_mm256_cvtepi32_ps(all), scales);
      if constexpr (kHasMin<Block>) {
        const __m256 mins = _mm256_maskz_cvtph_ps(0xff, load_eight(block.mins));
        const __m256 sum_of_x = _mm256_set1_ps(static_cast<float>(x.offsets[0][g]));
        part = _mm256_add_ps(part, _mm256_mul_ps(sum_of_x, mins));
      }
      acc[b] = _mm256_add_ps(acc[b], _mm256_mul_ps(part, x_scale));
    }
  }
#pragma GCC unroll 4
  for (size_t b = 0; b < kBlocks; ++b) sums[b] = acc[b];
}

template <typename Block>
void linear_one_row(const LinearSlice<int8_t, Block>& s, const CodeRows& x) {
  for_distant_blocks<kStreams>(s.channels, [&]<size_t kCount>(size_t first, size_t distance) {
    __m256 sums[kCount];
    one_row<Block, kCount>(x, s.weight + first * x.blocks, distance * x.blocks, sums);
    for (size_t b = 0; b < kCount; ++b) store(s, 0, (first + b * distance) * kBlockRows, sums[b]);
  });
}

/// kRows rows by two blocks of channels.
template <typename Block, size_t kRows>
[[gnu::noinline]] void some_rows(const CodeRows& x, const Block* weight0, const Block* weight1,
                                 __m512* sums) {
  __m512 acc[kRows];
#pragma GCC unroll 12
  for (__m512& sum : acc) sum = _mm512_setzero_ps();
  // Columns of the rows lie `stride` apart.
  const auto add = [&](size_t g, const int8_t* columns, size_t stride)
      __attribute__((always_inline)) {
    const Block &block0 = weight0[g], &block1 = weight1[g];
    __m512i low[kQuads], high[kQuads];
#pragma GCC unroll 4
    for (size_t j = 0; j < kQuads; ++j) {
      const auto half = [j](const Block& block) __attribute__((always_inline)) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.codes + 32 * j));
      };
      const __m512i codes =
          _mm512_inserti64x4(_mm512_castsi256_si512(half(block0)), half(block1), 1);
      low[j] = lower(codes);
      high[j] = upper(codes);
    }
    const auto sixteen = [](const F16* halves0, const F16* halves1) __attribute__((always_inline)) {
      return _mm512_cvtph_ps(_mm256_set_m128i(load_eight(halves1), load_eight(halves0)));
    };
    const __m512 scales = sixteen(block0.scales, block1.scales);
    __m512 mins = _mm512_setzero_ps();
    if constexpr (kHasMin<Block>) mins = sixteen(block0.mins, block1.mins);
#pragma GCC unroll 12
    for (size_t r = 0; r < kRows; ++r, columns += stride) {
      const int32_t offset = x.offsets[r][g];
      __m512i first = kHasMin<Block> ? _mm512_setzero_si512() : _mm512_set1_epi32(offset);
      __m512i second = _mm512_setzero_si512();
#pragma GCC unroll 4
      for (size_t j = 0; j < kQuads; ++j) {
        first = _mm512_dpbusd_epi32(first, low[j], _mm512_set1_epi32(four_of(columns + 4 * j)));
        second =
            _mm512_dpbusd_epi32(second, high[j], _mm512_set1_epi32(four_of(columns + 16 + 4 * j)));
      }
      const __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(first, second));
      __m512 part = _mm512_mul_ps(sum, scales);
      if constexpr (kHasMin<Block>) {
        const __m512 sum_of_x = _mm512_set1_ps(static_cast<float>(offset));
        part = _mm512_add_ps(part, _mm512_mul_ps(sum_of_x, mins));
      }
      acc[r] = _mm512_add_ps(acc[r], _mm512_mul_ps(part, _mm512_set1_ps(x.scales.of(r, g))));
    }
  };
  for (size_t g = 0; g < x.whole; ++g) add(g, x.x + g * kI4BlockColumns, x.x_stride);
  if (x.whole < x.blocks) add(x.whole, x.last[0], kI4BlockColumns);
#pragma GCC unroll 12
  for (size_t r = 0; r < kRows; ++r) sums[r] = acc[r];
}

template <typename Block>
constexpr decltype(&some_rows<Block, 1>) kSomeRows[kTileRows] = {
    some_rows<Block, 1>, some_rows<Block, 2>,  some_rows<Block, 3>,  some_rows<Block, 4>,
    some_rows<Block, 5>, some_rows<Block, 6>,  some_rows<Block, 7>,  some_rows<Block, 8>,
    some_rows<Block, 9>, some_rows<Block, 10>, some_rows<Block, 11>, some_rows<Block, 12>};

template <typename Block>
void linear(const LinearSlice<int8_t, Block>& s) {
  CodeRows x;
  if (s.rows == 1) {
    take_rows(s, 0, 1, &x);
    linear_one_row(s, x);
    return;
  }
  for (size_t m = 0; m < s.rows; m += kTileRows) {
    const size_t rows = s.rows - m < kTileRows ? s.rows - m : kTileRows;
    take_rows(s, m, rows, &x);
    for (size_t n = 0; n < s.channels; n += 2 * kBlockRows) {
      const Block* weight = s.weight + n / kBlockRows * x.blocks;
      const bool two = n + kBlockRows < s.channels;
      __m512 sums[kTileRows];
      kSomeRows<Block>[rows - 1](x, weight, two ? weight + x.blocks : weight, sums);
      for (size_t r = 0; r < rows; ++r) {
        store(s, m + r, n, _mm512_castps512_ps256(sums[r]));
        if (!two) continue;
        store(s, m + r, n + kBlockRows,
              _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(sums[r]), 1)));
      }
    }
  }
}

bool has_room(size_t depth) { return depth <= kMostBlocks * kI4BlockColumns; }

}  // namespace

void linear_i8_i4_f32_avx512_vnni(const LinearSlice<int8_t, I4Block>& s) {
  has_room(s.depth) ? linear(s) : linear_i8_i4_f32_avx2(s);
}
void linear_i8_i4min_f32_avx512_vnni(const LinearSlice<int8_t, I4MinBlock>& s) {
  has_room(s.depth) ? linear(s) : linear_i8_i4min_f32_avx2(s);
}

}  // namespace oxbow
