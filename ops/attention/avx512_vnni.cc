// AVX512-VNNI: as AVX2, but blocks of queries multiply and add in one instruction, and rows of scores are taken sixteen
// at a time. What is added up still goes to eight sums, in their order.

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 finds fault with its own header, which leaves vectors undefined on purpose.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "ops/attention/avx2_block.h"

namespace oxbow {
namespace {

struct MultiplyAdd {
  [[gnu::always_inline]] static inline void add(__m256i weight0, __m256i weight1, int32_t pair,
                                                __m256i (&acc)[2]) {
    const __m256i columns = _mm256_set1_epi32(pair);
    acc[0] = _mm256_dpwssd_epi32(acc[0], weight0, columns);
    acc[1] = _mm256_dpwssd_epi32(acc[1], weight1, columns);
  }
};

/// exp_lanes of avx2_block.h.
[[gnu::always_inline]] inline __m512 exp_16(__m512 x) {
  const __m512 magic = _mm512_set1_ps(kRoundMagic);
  const __m512 shifted =
      _mm512_add_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504088896341f)), magic);
  const __m512 n = _mm512_sub_ps(shifted, magic);
  const __m512 r = _mm512_sub_ps(_mm512_sub_ps(x, _mm512_mul_ps(n, _mm512_set1_ps(0.693359375f))),
                                 _mm512_mul_ps(n, _mm512_set1_ps(-2.12194440e-4f)));
  constexpr float kFactors[] = {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                                1.6666665459e-1f, 5.0000001201e-1f};
  __m512 p = _mm512_set1_ps(1.9875691500e-4f);
#pragma GCC unroll 5
  for (float factor : kFactors) p = _mm512_add_ps(_mm512_mul_ps(p, r), _mm512_set1_ps(factor));
  const __m512 e =
      _mm512_add_ps(_mm512_add_ps(_mm512_mul_ps(p, _mm512_mul_ps(r, r)), r), _mm512_set1_ps(1.0f));
  const __mmask16 counts = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.33654f), _CMP_NLT_UQ);
  return _mm512_maskz_scalef_ps(counts, e, n);
}

struct Avx512Rows : Avx2Rows {
  static float scale_and_max(size_t count, float scale, float floor, float* row) {
    if (count != kAttentionTile) return RowLoops::scale_and_max(count, scale, floor, row);
    __m512 largest = _mm512_set1_ps(floor);
#pragma GCC unroll 4
    for (size_t j = 0; j < kAttentionTile; j += 16) {
      const __m512 x = _mm512_mul_ps(_mm512_loadu_ps(row + j), _mm512_set1_ps(scale));
      _mm512_storeu_ps(row + j, x);
      largest = _mm512_max_ps(x, largest);
    }
    return max_lane(_mm256_max_ps(low_half(largest), high_half(largest)));
  }

  static float exp_and_sum(size_t count, float largest, float* row) {
    if (count != kAttentionTile) return RowLoops::exp_and_sum(count, largest, row);
    __m256 sum = _mm256_setzero_ps();
#pragma GCC unroll 4
    for (size_t j = 0; j < kAttentionTile; j += 16) {
      const __m512 x = exp_16(_mm512_sub_ps(_mm512_loadu_ps(row + j), _mm512_set1_ps(largest)));
      _mm512_storeu_ps(row + j, x);
      sum = _mm256_add_ps(_mm256_add_ps(sum, low_half(x)), high_half(x));
    }
    alignas(32) float lanes[kLanes];
    _mm256_store_ps(lanes, sum);
    return combine_sums(lanes);
  }

  static float multiply_and_absmax(size_t count, const float* factors, float* row) {
    if (count != kAttentionTile) return RowLoops::multiply_and_absmax(count, factors, row);
    __m512 largest = _mm512_setzero_ps();
#pragma GCC unroll 4
    for (size_t j = 0; j < kAttentionTile; j += 16) {
      const __m512 x = _mm512_mul_ps(_mm512_loadu_ps(row + j), _mm512_loadu_ps(factors + j));
      _mm512_storeu_ps(row + j, x);
      largest = _mm512_max_ps(_mm512_abs_ps(x), largest);
    }
    return max_lane(_mm256_max_ps(low_half(largest), high_half(largest)));
  }

  static void quantize(size_t count, const float* row, float inverse, int16_t* codes) {
    if (count != kAttentionTile) return RowLoops::quantize(count, row, inverse, codes);
    const __m512 most = _mm512_set1_ps(kWeightMax), magic = _mm512_set1_ps(kRoundMagic);
#pragma GCC unroll 4
    for (size_t j = 0; j < kAttentionTile; j += 16) {
      __m512 x = _mm512_mul_ps(_mm512_loadu_ps(row + j), _mm512_set1_ps(inverse));
      x = _mm512_max_ps(_mm512_set1_ps(-kWeightMax), _mm512_min_ps(most, x));
      x = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, x, _CMP_EQ_OQ), x);
      const __m512i code = _mm512_sub_epi32(_mm512_castps_si512(_mm512_add_ps(x, magic)),
                                            _mm512_castps_si512(magic));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + j), _mm512_cvtepi32_epi16(code));
    }
  }

 private:
  static __m256 low_half(__m512 x) { return _mm512_castps512_ps256(x); }
  static __m256 high_half(__m512 x) {
    return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1));
  }
};

}  // namespace

const AttentionKernel<int8_t> attention_f32_i8_f32_avx512_vnni =
    with_blocks(Int8Attention<Avx2>::kKernel, int8_block<Avx2Blocks<MultiplyAdd, Avx512Rows>>);

}  // namespace oxbow
