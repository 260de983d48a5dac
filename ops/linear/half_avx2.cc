// AVX2 and F16C: weights of 16 bits become floats in registers. As in avx2.cc a register is the eight lanes of one sum.

#include <immintrin.h>

#include "ops/linear/linear.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

[[gnu::always_inline]] inline __m256 load(const F16* w) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
}

[[gnu::always_inline]] inline __m256 load(const BF16* w) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

/// The first `count` of eight, then zeros.
template <typename W>
__m256 load_some(const W* w, size_t count) {
  W eight[kLanes] = {};
  __builtin_memcpy(eight, w, count * sizeof(W));
  return load(eight);
}

__m256 load_some(const float* x, size_t count) {
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                                          _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  return _mm256_maskload_ps(x, mask);
}

/// combine_sums of the lanes.
float combine(__m256 lanes) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

template <typename W, size_t kRows, size_t kChannels>
void tile(const LinearSlice<float, W>& s, size_t row, size_t channel) {
  const float* x = s.x + row * s.x_stride;
  const W* w = s.weight + channel * s.depth;
  __m256 acc[kRows][kChannels];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (size_t c = 0; c < kChannels; ++c) acc[r][c] = _mm256_setzero_ps();
  }
  const auto add = [&](const __m256(&xs)[kRows], size_t c, __m256 ws)
      __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
      acc[r][c] = _mm256_add_ps(acc[r][c], _mm256_mul_ps(xs[r], ws));
    }
  };
  size_t i = 0;
  for (; i + kLanes <= s.depth; i += kLanes) {
    __m256 xs[kRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) xs[r] = _mm256_loadu_ps(x + r * s.x_stride + i);
#pragma GCC unroll 8
    for (size_t c = 0; c < kChannels; ++c) add(xs, c, load(w + c * s.depth + i));
  }
  if (i < s.depth) {
    __m256 xs[kRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) xs[r] = load_some(x + r * s.x_stride + i, s.depth - i);
#pragma GCC unroll 8
    for (size_t c = 0; c < kChannels; ++c) {
      add(xs, c, load_some(w + c * s.depth + i, s.depth - i));
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
    float* y = s.y + (row + r) * s.y_stride + channel;
#pragma GCC unroll 8
    for (size_t c = 0; c < kChannels; ++c) {
      y[c] = combine(acc[r][c]) + (s.bias == nullptr ? 0.0f : s.bias[channel + c]);
    }
  }
}

template <typename W, size_t kRows, size_t kChannels>
void rows(const LinearSlice<float, W>& s, size_t row) {
  size_t n = 0;
  for (; n + kChannels <= s.channels; n += kChannels) tile<W, kRows, kChannels>(s, row, n);
  for (; n < s.channels; ++n) tile<W, kRows, 1>(s, row, n);
}

template <typename W>
void linear_half(const LinearSlice<float, W>& s) {
  size_t m = 0;
  for (; m + 3 <= s.rows; m += 3) rows<W, 3, 4>(s, m);
  if (m + 2 == s.rows) rows<W, 2, 4>(s, m);
  if (m + 1 == s.rows) rows<W, 1, 8>(s, m);
}

}  // namespace

void linear_f32_f16_f32_avx2(const LinearSlice<float, F16>& s) { linear_half(s); }
void linear_f32_bf16_f32_avx2(const LinearSlice<float, BF16>& s) { linear_half(s); }

}  // namespace oxbow
