#pragma once

// AVX2: several keys at once for the products with the query, many elements of the head at once for
// the sum of the values. Ends of rows are read under a mask, or again with the sixteen bytes before
// them, never beyond.

#include <immintrin.h>

#include "ops/attention/attention.h"
#include "ops/attention/generic.h"

namespace oxbow {
namespace {

__m256i first_lanes(size_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

__m128i load_16(const int8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

/// Sums of the lanes of four registers.
__m128i sum_lanes(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
  const __m256i cd = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
  const __m256i all =
      _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
  return _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}

/// Products of x with rows of 16 * kParts elements.
template <size_t kParts>
void dots_i8(const int16_t* x, const int8_t* rows, ptrdiff_t stride, size_t count, int32_t* dots) {
  __m256i codes[kParts];
#pragma GCC unroll 8
  for (size_t i = 0; i < kParts; ++i) {
    codes[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + 16 * i));
  }
  const auto products = [&](const int8_t* row) __attribute__((always_inline)) {
    __m256i sum = _mm256_madd_epi16(codes[0], _mm256_cvtepi8_epi16(load_16(row)));
#pragma GCC unroll 8
    for (size_t i = 1; i < kParts; ++i) {
      const __m256i part = _mm256_cvtepi8_epi16(load_16(row + 16 * i));
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(codes[i], part));
    }
    return sum;
  };
  size_t j = 0;
  for (; j + 4 <= count; j += 4, rows += 4 * stride) {
    const __m256i sum0 = products(rows), sum1 = products(rows + stride);
    const __m256i sum2 = products(rows + 2 * stride), sum3 = products(rows + 3 * stride);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dots + j), sum_lanes(sum0, sum1, sum2, sum3));
  }
  for (; j < count; ++j, rows += stride) {
    const __m256i sum = products(rows);
    dots[j] = _mm_cvtsi128_si32(sum_lanes(sum, sum, sum, sum));
  }
}

/// The same for any width from 16 on, kKeys rows at once, kKeys at most four. `tail` has the last
/// head_width % 16 codes of x, and zeros before them.
template <size_t kKeys>
void dots_i8_any_width(const int16_t* x, const __m256i tail, const int8_t* rows, ptrdiff_t stride,
                       size_t head_width, int32_t* dots) {
  __m256i acc[4];
#pragma GCC unroll 4
  for (__m256i& sum : acc) sum = _mm256_setzero_si256();
  size_t d = 0;
  for (; d + 16 <= head_width; d += 16) {
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + d));
#pragma GCC unroll 4
    for (size_t j = 0; j < kKeys; ++j) {
      const int8_t* row = rows + static_cast<ptrdiff_t>(j) * stride;
      acc[j] = _mm256_add_epi32(acc[j],
                                _mm256_madd_epi16(codes, _mm256_cvtepi8_epi16(load_16(row + d))));
    }
  }
  if (d < head_width) {
#pragma GCC unroll 4
    for (size_t j = 0; j < kKeys; ++j) {
      const int8_t* end = rows + static_cast<ptrdiff_t>(j) * stride + head_width;
      acc[j] = _mm256_add_epi32(acc[j],
                                _mm256_madd_epi16(tail, _mm256_cvtepi8_epi16(load_16(end - 16))));
    }
  }
  const __m128i sums = sum_lanes(acc[0], acc[1], acc[2], acc[3]);
  if constexpr (kKeys == 4) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dots), sums);
  } else {
    static_assert(kKeys == 1);
    *dots = _mm_cvtsi128_si32(sums);
  }
}

/// As above with the eight lanes of math.h in each register.
template <size_t kKeys>
void dots_f32(const float* x, const float* rows, ptrdiff_t stride, size_t head_width, float* dots) {
  __m256 acc[4];
#pragma GCC unroll 4
  for (__m256& sum : acc) sum = _mm256_setzero_ps();
  size_t d = 0;
  for (; d + kLanes <= head_width; d += kLanes) {
    const __m256 part = _mm256_loadu_ps(x + d);
#pragma GCC unroll 4
    for (size_t j = 0; j < kKeys; ++j) {
      const float* row = rows + static_cast<ptrdiff_t>(j) * stride;
      acc[j] = _mm256_add_ps(acc[j], _mm256_mul_ps(part, _mm256_loadu_ps(row + d)));
    }
  }
  if (d < head_width) {
    // A sum that began as +0 is never -0, so that lanes which add +0 keep their bits.
    const __m256i mask = first_lanes(head_width - d);
    const __m256 part = _mm256_maskload_ps(x + d, mask);
#pragma GCC unroll 4
    for (size_t j = 0; j < kKeys; ++j) {
      const float* row = rows + static_cast<ptrdiff_t>(j) * stride;
      acc[j] = _mm256_add_ps(acc[j], _mm256_mul_ps(part, _mm256_maskload_ps(row + d, mask)));
    }
  }
  // combine_sums of four registers.
  __m128 r[4];
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    r[j] = _mm_add_ps(_mm256_castps256_ps128(acc[j]), _mm256_extractf128_ps(acc[j], 1));
  }
  _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]);
  const __m128 sums = _mm_add_ps(_mm_add_ps(r[0], r[2]), _mm_add_ps(r[1], r[3]));
  if constexpr (kKeys == 4) {
    _mm_storeu_ps(dots, sums);
  } else {
    static_assert(kKeys == 1);
    *dots = _mm_cvtss_f32(sums);
  }
}

/// Adds w0 * row0 + w1 * row1, of which pair has the weights, to sums of 16 * kParts elements: pmaddwd
/// adds the two. Of sixteen elements, the first sum has 0 to 3 and 8 to 11, the second the others.
template <size_t kParts>
[[gnu::always_inline]] inline void add_two_values(int32_t weights, const int8_t* row0,
                                                  const int8_t* row1, __m256i (&sums)[2 * kParts]) {
  const __m256i pair = _mm256_set1_epi32(weights);
#pragma GCC unroll 4
  for (size_t i = 0; i < kParts; ++i) {
    const __m256i v0 = _mm256_cvtepi8_epi16(load_16(row0 + 16 * i));
    const __m256i v1 = _mm256_cvtepi8_epi16(load_16(row1 + 16 * i));
    const __m256i first = _mm256_madd_epi16(_mm256_unpacklo_epi16(v0, v1), pair);
    const __m256i second = _mm256_madd_epi16(_mm256_unpackhi_epi16(v0, v1), pair);
    sums[2 * i] = _mm256_add_epi32(sums[2 * i], first);
    sums[2 * i + 1] = _mm256_add_epi32(sums[2 * i + 1], second);
    // Compilers would move all additions to the end, for which there are too few registers.
    asm volatile("" : "+x"(sums[2 * i]), "+x"(sums[2 * i + 1]));
  }
}

/// Sums of 16 * kParts elements of the values over all keys, in order.
template <size_t kParts>
void sum_values(const int16_t* weights, const int8_t* rows, size_t stride, size_t count,
                __m256i (&sums)[2 * kParts]) {
#pragma GCC unroll 8
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  size_t j = 0;
  for (; j + 2 <= count; j += 2, rows += 2 * stride) {
    int32_t two;
    __builtin_memcpy(&two, weights + j, sizeof(two));
    add_two_values<kParts>(two, rows, rows + stride, sums);
  }
  if (j < count) add_two_values<kParts>(static_cast<uint16_t>(weights[j]), rows, rows, sums);
#pragma GCC unroll 4
  for (size_t i = 0; i < kParts; ++i) {
    const __m256i first = sums[2 * i], second = sums[2 * i + 1];
    sums[2 * i] = _mm256_permute2x128_si256(first, second, 0x20);
    sums[2 * i + 1] = _mm256_permute2x128_si256(first, second, 0x31);
  }
}

template <size_t kParts>
void accumulate_i8(const int16_t* weights, const int8_t* rows, size_t stride, size_t count,
                   int32_t* acc) {
  __m256i sums[2 * kParts];
  sum_values<kParts>(weights, rows, stride, count, sums);
#pragma GCC unroll 8
  for (size_t i = 0; i < 2 * kParts; ++i) {
    auto* to = reinterpret_cast<__m256i*>(acc + 8 * i);
    _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), sums[i]));
  }
}

/// 8 * kParts elements, the keys one after the other.
template <size_t kParts>
void accumulate_f32(const float* weights, const float* rows, size_t stride, size_t count,
                    float* acc) {
  __m256 sums[kParts];
#pragma GCC unroll 8
  for (size_t i = 0; i < kParts; ++i) sums[i] = _mm256_loadu_ps(acc + 8 * i);
  for (size_t j = 0; j < count; ++j) {
    const __m256 weight = _mm256_set1_ps(weights[j]);
#pragma GCC unroll 8
    for (size_t i = 0; i < kParts; ++i) {
      const __m256 values = _mm256_loadu_ps(rows + j * stride + 8 * i);
      sums[i] = _mm256_add_ps(sums[i], _mm256_mul_ps(weight, values));
    }
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < kParts; ++i) _mm256_storeu_ps(acc + 8 * i, sums[i]);
}

struct Avx2 {
  static void dots(const float* x, const float* rows, ptrdiff_t stride, size_t count,
                   size_t head_width, float* dots) {
    size_t j = 0;
    for (; j + 4 <= count; j += 4, rows += 4 * stride) {
      dots_f32<4>(x, rows, stride, head_width, dots + j);
    }
    for (; j < count; ++j, rows += stride) dots_f32<1>(x, rows, stride, head_width, dots + j);
  }

  static void dots(const int16_t* x, const int8_t* rows, ptrdiff_t stride, size_t count,
                   size_t head_width, int32_t* dots) {
    if (head_width < 16) {
      for (size_t j = 0; j < count; ++j, rows += stride) {
        int32_t sum = 0;
        for (size_t d = 0; d < head_width; ++d) sum += int32_t{x[d]} * int32_t{rows[d]};
        dots[j] = sum;
      }
      return;
    }
    switch (head_width) {
      case 32:
        return dots_i8<2>(x, rows, stride, count, dots);
      case 64:
        return dots_i8<4>(x, rows, stride, count, dots);
      case 128:
        return dots_i8<8>(x, rows, stride, count, dots);
      default:
        break;
    }
    alignas(32) int16_t tail[16] = {};
    for (size_t d = head_width / 16 * 16; d < head_width; ++d) tail[16 - head_width + d] = x[d];
    const __m256i tail_codes = _mm256_load_si256(reinterpret_cast<const __m256i*>(tail));
    size_t j = 0;
    for (; j + 4 <= count; j += 4, rows += 4 * stride) {
      dots_i8_any_width<4>(x, tail_codes, rows, stride, head_width, dots + j);
    }
    for (; j < count; ++j, rows += stride) {
      dots_i8_any_width<1>(x, tail_codes, rows, stride, head_width, dots + j);
    }
  }

  static void accumulate(const float* weights, const float* rows, size_t stride, size_t count,
                         size_t head_width, float* acc) {
    size_t d = 0;
    for (; d + 64 <= head_width; d += 64) {
      accumulate_f32<8>(weights, rows + d, stride, count, acc + d);
    }
    for (; d + 32 <= head_width; d += 32) {
      accumulate_f32<4>(weights, rows + d, stride, count, acc + d);
    }
    for (; d + 8 <= head_width; d += 8) {
      accumulate_f32<1>(weights, rows + d, stride, count, acc + d);
    }
    if (d == head_width) return;
    const __m256i mask = first_lanes(head_width - d);
    __m256 sum = _mm256_maskload_ps(acc + d, mask);
    for (size_t j = 0; j < count; ++j) {
      const __m256 values = _mm256_maskload_ps(rows + j * stride + d, mask);
      sum = _mm256_add_ps(sum, _mm256_mul_ps(_mm256_set1_ps(weights[j]), values));
    }
    _mm256_maskstore_ps(acc + d, mask, sum);
  }

  static void accumulate(const int16_t* weights, const int8_t* rows, size_t stride, size_t count,
                         size_t head_width, int32_t* acc) {
    if (head_width < 16) return accumulate_narrow(weights, rows, stride, count, head_width, acc);
    size_t d = 0;
    for (; d + 64 <= head_width; d += 64) {
      accumulate_i8<4>(weights, rows + d, stride, count, acc + d);
    }
    for (; d + 32 <= head_width; d += 32) {
      accumulate_i8<2>(weights, rows + d, stride, count, acc + d);
    }
    for (; d + 16 <= head_width; d += 16) {
      accumulate_i8<1>(weights, rows + d, stride, count, acc + d);
    }
    if (d == head_width) return;
    // Sixteen elements again, of which those from d on are new.
    __m256i sums[2];
    sum_values<1>(weights, rows + head_width - 16, stride, count, sums);
    alignas(32) int32_t lanes[16];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sums[0]);
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes + 8), sums[1]);
    for (; d < head_width; ++d) acc[d] += lanes[16 - head_width + d];
  }
};

}  // namespace
}  // namespace oxbow
