// AVX2 and F16C: weights of 16 bits become floats in registers.

#include "ops/linear/float_avx2.h"

namespace oxbow {
namespace {

/// The first `count` of eight, then zeros.
template <typename W>
__m128i some_of(const W* w, size_t count) {
  W eight[kLanes] = {};
  __builtin_memcpy(eight, w, count * sizeof(W));
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(eight));
}

struct F16Weights {
  using Type = F16;
  static constexpr bool kCostly = true;
  static __m256 load(const F16* w) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
  }
  static __m256 load_some(const F16* w, size_t count) { return _mm256_cvtph_ps(some_of(w, count)); }
};

struct BF16Weights {
  using Type = BF16;
  static constexpr bool kCostly = true;
  static __m256 load(const BF16* w) {
    return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
  }
  static __m256 load_some(const BF16* w, size_t count) { return widen(some_of(w, count)); }

 private:
  static __m256 widen(__m128i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
};

}  // namespace

void linear_f32_f16_f32_avx2(const LinearSlice<float, F16>& s) { FloatLinear<F16Weights>::run(s); }
void linear_f32_bf16_f32_avx2(const LinearSlice<float, BF16>& s) {
  FloatLinear<BF16Weights>::run(s);
}

}  // namespace oxbow
