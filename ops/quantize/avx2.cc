// AVX2 rounds to the nearest, ties to even, and narrows with saturation: what quantize.h spells out in
// several steps takes one each.

#include <immintrin.h>

#include "ops/quantize/generic.h"
#include "ops/quantize/quantize.h"
#include "runtime/base/quantize.h"

namespace oxbow {
namespace {

/// The larger of each lane; `b` where `a` is NaN.
[[gnu::always_inline]] inline __m256 larger(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }

/// Eight codes in 32 bits. Without the limit above, infinity would become the most negative number.
[[gnu::always_inline]] inline __m256i codes_of(const float* x, __m256 inverse) {
  const __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x), inverse);
  const __m256 limited = _mm256_min_ps(v, _mm256_set1_ps(float{kQuantMax}));
  return _mm256_cvtps_epi32(_mm256_and_ps(limited, _mm256_cmp_ps(v, v, _CMP_ORD_Q)));
}

struct Avx2 {
  using Vector = __m256;
  static constexpr size_t kLanes = 8;

  [[gnu::always_inline]] static Vector load(const float* x) { return _mm256_loadu_ps(x); }
  [[gnu::always_inline]] static void store(float* x, Vector v) { _mm256_storeu_ps(x, v); }
  [[gnu::always_inline]] static Vector plus(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  [[gnu::always_inline]] static Vector minus(Vector a, Vector b) { return _mm256_sub_ps(a, b); }

  /// Each lane and its partner: the first of a pair adds, the second is taken from the first.
  [[gnu::always_inline]] static Vector hadamard_lanes(Vector v) {
    constexpr float kMinus = -0.0f;
    const __m256 odd = _mm256_setr_ps(0, kMinus, 0, kMinus, 0, kMinus, 0, kMinus);
    const __m256 upper_pair = _mm256_setr_ps(0, 0, kMinus, kMinus, 0, 0, kMinus, kMinus);
    const __m256 upper_half = _mm256_setr_ps(0, 0, 0, 0, kMinus, kMinus, kMinus, kMinus);
    v = _mm256_add_ps(_mm256_permute_ps(v, 0xb1), _mm256_xor_ps(v, odd));
    v = _mm256_add_ps(_mm256_permute_ps(v, 0x4e), _mm256_xor_ps(v, upper_pair));
    return _mm256_add_ps(_mm256_permute2f128_ps(v, v, 1), _mm256_xor_ps(v, upper_half));
  }

  static float absmax(const float* x, size_t count) {
    const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    __m256 most[4];
#pragma GCC unroll 4
    for (__m256& lanes : most) lanes = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 32 <= count; i += 32) {
#pragma GCC unroll 4
      for (size_t j = 0; j < 4; ++j) {
        most[j] = larger(_mm256_and_ps(magnitude, _mm256_loadu_ps(x + i + 8 * j)), most[j]);
      }
    }
    for (; i + 8 <= count; i += 8) {
      most[0] = larger(_mm256_and_ps(magnitude, _mm256_loadu_ps(x + i)), most[0]);
    }
    const __m256 all = larger(larger(most[0], most[1]), larger(most[2], most[3]));
    alignas(32) float lanes[kLanes];
    _mm256_store_ps(lanes, all);
    float result = lanes[0];
    for (float lane : lanes) result = lane > result ? lane : result;
    for (; i < count; ++i) result = abs_f32(x[i]) > result ? abs_f32(x[i]) : result;
    return result;
  }

  static void codes(const float* x, size_t count, float scale, int8_t* q) {
    const __m256 inverse = _mm256_set1_ps(scale);
    const __m256i least = _mm256_set1_epi8(-kQuantMax);
    // Narrowing works in halves of a register; this brings groups of four codes into their order.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    size_t i = 0;
    for (; i + 32 <= count; i += 32) {
      const __m256i low =
          _mm256_packs_epi32(codes_of(x + i, inverse), codes_of(x + i + 8, inverse));
      const __m256i high =
          _mm256_packs_epi32(codes_of(x + i + 16, inverse), codes_of(x + i + 24, inverse));
      const __m256i packed = _mm256_max_epi8(_mm256_packs_epi16(low, high), least);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + i),
                          _mm256_permutevar8x32_epi32(packed, order));
    }
    for (; i < count; ++i) q[i] = quantize_value(x[i], scale);
  }
};

}  // namespace

void quantize_f32_i8_avx2(float* x, size_t width, const RowForm& form, int8_t* q, float* scales) {
  quantize_with<Avx2>(x, width, form, q, scales);
}

}  // namespace oxbow
