// AVX2: pmaddubsw multiplies stored codes, 0 to 2 (3 in a strange file), by x. Sums of two products are at most
// 2 * 3 * 128 = 768 and stay in 16 bits for kStrip blocks of columns. A register has eight channels by four columns; one load
// of 32 bytes is four of them.

#include <immintrin.h>

#include "ops/linear/low_bits.h"

namespace oxbow {
namespace {

constexpr size_t kStreams = 4;
constexpr size_t kPrefetchBlocks = 16;
constexpr size_t kQuads = 4;
/// Blocks of columns before sums of 16 bits become 32.
constexpr size_t kStrip = 8;
static_assert(kStrip * kQuads * 2 * 3 * 128 <= INT16_MAX);

[[gnu::always_inline]] inline __m256i repeat_four(const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, sizeof(four));
  return _mm256_set1_epi32(four);
}

[[gnu::always_inline]] inline __m256i codes_of(__m256i bytes, size_t quad) {
  const __m256i mask = _mm256_set1_epi8(3);
  switch (quad) {
    case 0:
      return _mm256_and_si256(bytes, mask);
    case 1:
      return _mm256_and_si256(_mm256_srli_epi16(bytes, 2), mask);
    case 2:
      return _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask);
    default:
      return _mm256_and_si256(_mm256_srli_epi16(bytes, 6), mask);
  }
}

/// kRows rows by kBlocks blocks of channels, which are `distance` blocks apart: the sums of the stored codes.
template <size_t kRows, size_t kBlocks>
[[gnu::noinline]] void tile(const int8_t* x, size_t x_stride, const TernaryBlock* weight,
                            size_t distance, size_t blocks, __m256i (*sums)[kStreams]) {
  __m256i acc[kRows][kBlocks];
#pragma GCC unroll 4
  for (size_t i = 0; i < kRows * kBlocks; ++i) {
    acc[i / kBlocks][i % kBlocks] = _mm256_setzero_si256();
  }
  for (size_t first = 0; first < blocks; first += kStrip) {
    const size_t end = blocks - first < kStrip ? blocks : first + kStrip;
    __m256i narrow[kRows][kBlocks];
#pragma GCC unroll 4
    for (size_t i = 0; i < kRows * kBlocks; ++i) {
      narrow[i / kBlocks][i % kBlocks] = _mm256_setzero_si256();
    }
    for (size_t g = first; g < end; ++g) {
      __m256i bytes[kBlocks];
#pragma GCC unroll 4
      for (size_t b = 0; b < kBlocks; ++b) {
        const TernaryBlock* block = weight + b * distance + g;
        bytes[b] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block->codes));
        if (kRows == 1 && g % 2 == 0) {
          _mm_prefetch(reinterpret_cast<const char*>(block + kPrefetchBlocks), _MM_HINT_T0);
        }
      }
#pragma GCC unroll 4
      for (size_t j = 0; j < kQuads; ++j) {
        __m256i columns[kRows];
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) {
          columns[r] = repeat_four(x + r * x_stride + g * kTernaryBlockColumns + 4 * j);
        }
#pragma GCC unroll 4
        for (size_t b = 0; b < kBlocks; ++b) {
          const __m256i codes = codes_of(bytes[b], j);
#pragma GCC unroll 4
          for (size_t r = 0; r < kRows; ++r) {
            narrow[r][b] = _mm256_add_epi16(narrow[r][b], _mm256_maddubs_epi16(codes, columns[r]));
          }
        }
      }
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < kRows * kBlocks; ++i) {
      __m256i& sum = acc[i / kBlocks][i % kBlocks];
      sum = _mm256_add_epi32(
          sum, _mm256_madd_epi16(narrow[i / kBlocks][i % kBlocks], _mm256_set1_epi16(1)));
    }
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < kRows * kBlocks; ++i) {
    sums[i / kBlocks][i % kBlocks] = acc[i / kBlocks][i % kBlocks];
  }
}

void store(const LinearSlice<int8_t, TernaryBlock>& s, size_t row, size_t channel, __m256i stored,
           int32_t offset) {
  alignas(32) int32_t lanes[kBlockRows];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes),
                     _mm256_sub_epi32(stored, _mm256_set1_epi32(offset)));
  float* y = s.y + row * s.y_stride + channel;
  for (size_t c = 0; c < kBlockRows && channel + c < s.channels; ++c) {
    const float scale = s.x_scales[row] * s.weight_scales[channel + c];
    y[c] = static_cast<float>(lanes[c]) * scale + (s.bias == nullptr ? 0.0f : s.bias[channel + c]);
  }
}

/// Rows [row, row + kRows) by all channels, kBlocks blocks of them at a time as far as they go.
template <size_t kRows, size_t kBlocks>
void some_rows(const LinearSlice<int8_t, TernaryBlock>& s, size_t row) {
  const size_t blocks = (s.depth + kTernaryBlockColumns - 1) / kTernaryBlockColumns;
  const int8_t* x = s.x + row * s.x_stride;
  int32_t offsets[kRows];
  for (size_t r = 0; r < kRows; ++r) {
    offsets[r] = kTernaryOffset * sum_of(x + r * s.x_stride, s.depth);
  }
  for_distant_blocks<kBlocks>(s.channels, [&]<size_t kCount>(size_t first, size_t distance) {
    __m256i sums[kRows][kStreams];
    tile<kRows, kCount>(x, s.x_stride, s.weight + first * blocks, distance * blocks, blocks, sums);
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t b = 0; b < kCount; ++b) {
        store(s, row + r, (first + b * distance) * kBlockRows, sums[r][b], offsets[r]);
      }
    }
  });
}

}  // namespace

void linear_i8_ternary_f32_avx2(const LinearSlice<int8_t, TernaryBlock>& s) {
  if (s.rows == 1) return some_rows<1, kStreams>(s, 0);
  size_t m = 0;
  for (; m + 4 <= s.rows; m += 4) some_rows<4, 1>(s, m);
  for (; m + 2 <= s.rows; m += 2) some_rows<2, 2>(s, m);
  if (m < s.rows) some_rows<1, kStreams>(s, m);
}

}  // namespace oxbow
