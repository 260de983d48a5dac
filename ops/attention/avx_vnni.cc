// AVX-VNNI: as AVX2, but blocks of queries multiply and add in one instruction.

#include "ops/attention/avx2_block.h"

namespace oxbow {
namespace {

struct MultiplyAdd {
  [[gnu::always_inline]] static inline void add(__m256i weight0, __m256i weight1, int32_t pair,
                                                __m256i (&acc)[2]) {
    const __m256i columns = _mm256_set1_epi32(pair);
    acc[0] = _mm256_dpwssd_avx_epi32(acc[0], weight0, columns);
    acc[1] = _mm256_dpwssd_avx_epi32(acc[1], weight1, columns);
  }
};

}  // namespace

const AttentionKernel<int8_t> attention_f32_i8_f32_avx_vnni =
    with_blocks(Int8Attention<Avx2>::kKernel, int8_block<Avx2Blocks<MultiplyAdd>>);

}  // namespace oxbow
