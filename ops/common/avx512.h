#pragma once

// Registers of 512 bits that hold the eight lanes of two sums of runtime/base/math.h. For sources that are compiled
// for AVX-512; everything is in an unnamed namespace, so that no copy gets outside the file that includes this.

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 finds fault with its own header, which leaves vectors undefined on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include <cstddef>

namespace oxbow {
namespace {

[[gnu::always_inline]] inline __m512 twice(__m256 x) {
  return _mm512_castpd_ps(_mm512_broadcast_f64x4(_mm256_castps_pd(x)));
}

[[gnu::always_inline]] inline __m512 side_by_side(__m256 a, __m256 b) {
  return _mm512_castpd_ps(
      _mm512_insertf64x4(_mm512_castps_pd(_mm512_castps256_ps512(a)), _mm256_castps_pd(b), 1));
}

/// acc[c] += x * w[c]. Written out, since compilers keep some of two dozen sums in memory.
[[gnu::always_inline]] inline void add_four_products(__m512 x, const __m512 (&w)[4],
                                                     __m512 (&acc)[4]) {
  __m512 products;
  asm("vmulps %6, %4, %5\n\t"
      "vaddps %5, %0, %0\n\t"
      "vmulps %7, %4, %5\n\t"
      "vaddps %5, %1, %1\n\t"
      "vmulps %8, %4, %5\n\t"
      "vaddps %5, %2, %2\n\t"
      "vmulps %9, %4, %5\n\t"
      "vaddps %5, %3, %3"
      : "+v"(acc[0]), "+v"(acc[1]), "+v"(acc[2]), "+v"(acc[3]), "+v"(x), "=&v"(products)
      : "v"(w[0]), "v"(w[1]), "v"(w[2]), "v"(w[3]));
}

/// The eight lanes of two sums to four.
[[gnu::always_inline]] inline __m512 fold_lanes(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
}

/// To two lanes each: of the first row columns 0 and 2, of the second, of the first 1 and 3, of the second.
[[gnu::always_inline]] inline __m512 fold_columns(const __m512 (&sums)[4]) {
  const __m512 a = fold_lanes(sums[0], sums[1]), b = fold_lanes(sums[2], sums[3]);
  return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
}

/// combine_sums of four rows with four columns each, of which a register of `first` or `second` holds two rows.
[[gnu::always_inline]] inline __m512 combine_four_rows(const __m512 (&first)[4],
                                                       const __m512 (&second)[4]) {
  const __m512 a = fold_columns(first), b = fold_columns(second);
  const __m512 all = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xDD));
  const __m512i order = _mm512_setr_epi32(0, 8, 1, 9, 4, 12, 5, 13, 2, 10, 3, 11, 6, 14, 7, 15);
  return _mm512_permutexvar_ps(order, all);
}

/// put(i, columns) for each of the four rows.
template <typename Put>
[[gnu::always_inline]] inline void for_four_rows(__m512 rows, const Put& put) {
  put(0, _mm512_castps512_ps128(rows));
  put(1, _mm512_extractf32x4_ps(rows, 1));
  put(2, _mm512_extractf32x4_ps(rows, 2));
  put(3, _mm512_extractf32x4_ps(rows, 3));
}

}  // namespace
}  // namespace oxbow
