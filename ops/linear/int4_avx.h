#pragma once

// Int4 in registers of 256 bits: of stored codes, 0 to 15, and x. A register has eight channels by four columns, the lower and
// the upper half of the bytes of one load are two such registers. How products are added is all that AVX2 and AVX-VNNI differ
// in; each file that includes this has its own.

#include <immintrin.h>

#include "ops/linear/low_bits.h"

namespace oxbow {
namespace {

/// Blocks that are read at once for a single row lie apart, which memory serves best.
constexpr size_t kStreams = 4;
constexpr size_t kQuads = 4;

[[gnu::always_inline]] inline __m256i repeat_four(const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, sizeof(four));
  return _mm256_set1_epi32(four);
}

#ifdef __AVXVNNI__
/// In 32 bits, four products at once.
[[gnu::always_inline]] inline __m256i add_products(__m256i sums, __m256i codes, __m256i x) {
  return _mm256_dpbusd_avx_epi32(sums, codes, x);
}
[[gnu::always_inline]] inline __m256i both(__m256i low, __m256i high) {
  return _mm256_add_epi32(low, high);
}
#else
/// pmaddubsw: eight sums of two products are at most 8 * 2 * 15 * 128 = 30720, so those of 32 columns fit into 16 bits, and
/// only then become 32.
[[gnu::always_inline]] inline __m256i add_products(__m256i sums, __m256i codes, __m256i x) {
  return _mm256_add_epi16(sums, _mm256_maddubs_epi16(codes, x));
}
[[gnu::always_inline]] inline __m256i both(__m256i low, __m256i high) {
  return _mm256_madd_epi16(_mm256_add_epi16(low, high), _mm256_set1_epi16(1));
}
#endif

[[gnu::always_inline]] inline __m256 load_f16(const F16* eight) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(eight)));
}

/// acc += (float(sum of eight channels) * their scales + float(sum of x) * their mins) * x_scale.
template <typename Block>
[[gnu::always_inline]] inline __m256 add_block(__m256 acc, __m256i low, __m256i high, int32_t x_sum,
                                               float x_scale, const Block& block) {
  __m256i sums = both(low, high);
  if constexpr (!kHasMin<Block>) {
    sums = _mm256_sub_epi32(sums, _mm256_set1_epi32(kI4Offset * x_sum));
  }
  __m256 part = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), load_f16(block.scales));
  if constexpr (kHasMin<Block>) {
    const __m256 sums_of_x = _mm256_set1_ps(static_cast<float>(x_sum));
    part = _mm256_add_ps(part, _mm256_mul_ps(sums_of_x, load_f16(block.mins)));
  }
  return _mm256_add_ps(acc, _mm256_mul_ps(part, _mm256_set1_ps(x_scale)));
}

/// acc * row_scale + bias for the channels of one block.
template <typename Block>
void store(const LinearSlice<int8_t, Block>& s, size_t row, size_t channel, __m256 acc) {
  float* y = s.y + row * s.y_stride + channel;
  const size_t count = s.channels - channel;
  const __m256 scaled = _mm256_mul_ps(acc, _mm256_set1_ps(row_scale(s, row)));
  if (count >= kBlockRows) {
    const __m256 bias = s.bias == nullptr ? _mm256_setzero_ps() : _mm256_loadu_ps(s.bias + channel);
    _mm256_storeu_ps(y, _mm256_add_ps(scaled, bias));
    return;
  }
  alignas(32) float lanes[kBlockRows];
  _mm256_store_ps(lanes, scaled);
  for (size_t c = 0; c < count; ++c) {
    y[c] = lanes[c] + (s.bias == nullptr ? 0.0f : s.bias[channel + c]);
  }
}

/// One row by kBlocks blocks of channels, `distance` blocks apart.
template <typename Block, size_t kBlocks>
[[gnu::noinline]] void one_row(const I4Rows& x, const Block* weight, size_t distance,
                               __m256* sums) {
  const __m256i mask = _mm256_set1_epi8(15);
  __m256 acc[kBlocks];
#pragma GCC unroll 4
  for (size_t b = 0; b < kBlocks; ++b) acc[b] = _mm256_setzero_ps();
  for (size_t g = 0; g < x.blocks; ++g) {
    const int8_t* columns = x.columns(0, g);
    __m256i low[kBlocks], high[kBlocks];
#pragma GCC unroll 4
    for (size_t b = 0; b < kBlocks; ++b) low[b] = high[b] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (size_t j = 0; j < kQuads; ++j) {
      const __m256i x_low = repeat_four(columns + 4 * j),
                    x_high = repeat_four(columns + 16 + 4 * j);
#pragma GCC unroll 4
      for (size_t b = 0; b < kBlocks; ++b) {
        const Block* block = weight + b * distance + g;
        const __m256i codes =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block->codes + 32 * j));
        low[b] = add_products(low[b], _mm256_and_si256(codes, mask), x_low);
        high[b] =
            add_products(high[b], _mm256_and_si256(_mm256_srli_epi16(codes, 4), mask), x_high);
      }
    }
#pragma GCC unroll 4
    for (size_t b = 0; b < kBlocks; ++b) {
      acc[b] = add_block(acc[b], low[b], high[b], x.sums[0][g], x.scales.of(0, g),
                         weight[b * distance + g]);
    }
  }
#pragma GCC unroll 4
  for (size_t b = 0; b < kBlocks; ++b) sums[b] = acc[b];
}

/// kRows rows by one block of channels.
template <typename Block, size_t kRows>
[[gnu::noinline]] void some_rows(const I4Rows& x, const Block* weight, __m256* sums) {
  const __m256i mask = _mm256_set1_epi8(15);
  __m256 acc[kRows];
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) acc[r] = _mm256_setzero_ps();
  // Columns of the rows lie `stride` apart.
  const auto add = [&](size_t g, const int8_t* columns, size_t stride)
      __attribute__((always_inline)) {
    const Block& block = weight[g];
    __m256i low[kQuads], high[kQuads];
#pragma GCC unroll 4
    for (size_t j = 0; j < kQuads; ++j) {
      const __m256i codes =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.codes + 32 * j));
      low[j] = _mm256_and_si256(codes, mask);
      high[j] = _mm256_and_si256(_mm256_srli_epi16(codes, 4), mask);
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r, columns += stride) {
      __m256i l = _mm256_setzero_si256(), h = l;
#pragma GCC unroll 4
      for (size_t j = 0; j < kQuads; ++j) {
        l = add_products(l, low[j], repeat_four(columns + 4 * j));
        h = add_products(h, high[j], repeat_four(columns + 16 + 4 * j));
      }
      acc[r] = add_block(acc[r], l, h, x.sums[r][g], x.scales.of(r, g), block);
    }
  };
  for (size_t g = 0; g < x.whole; ++g) add(g, x.x + g * kI4BlockColumns, x.x_stride);
  if (x.whole < x.blocks) add(x.whole, x.last[0], kI4BlockColumns);
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) sums[r] = acc[r];
}

template <typename Block>
constexpr decltype(&some_rows<Block, 1>) kSomeRows[kLowBitRows] = {
    some_rows<Block, 1>, some_rows<Block, 2>, some_rows<Block, 3>, some_rows<Block, 4>};

template <typename Block>
void linear_one_row(const LinearSlice<int8_t, Block>& s, const I4Rows& x) {
  for_distant_blocks<kStreams>(s.channels, [&]<size_t kCount>(size_t first, size_t distance) {
    __m256 sums[kCount];
    one_row<Block, kCount>(x, s.weight + first * x.blocks, distance * x.blocks, sums);
    for (size_t b = 0; b < kCount; ++b) store(s, 0, (first + b * distance) * kBlockRows, sums[b]);
  });
}

template <typename Block>
void int4_linear(const LinearSlice<int8_t, Block>& s) {
  I4Rows x;
  if (s.rows == 1) {
    take_rows(s, 0, 1, &x);
    linear_one_row(s, x);
    return;
  }
  for (size_t m = 0; m < s.rows; m += kLowBitRows) {
    const size_t rows = s.rows - m < kLowBitRows ? s.rows - m : kLowBitRows;
    take_rows(s, m, rows, &x);
    for (size_t n = 0; n < s.channels; n += kBlockRows) {
      __m256 sums[kLowBitRows];
      kSomeRows<Block>[rows - 1](x, s.weight + n / kBlockRows * x.blocks, sums);
      for (size_t r = 0; r < rows; ++r) store(s, m + r, n, sums[r]);
    }
  }
}

}  // namespace
}  // namespace oxbow
