// One query at a time: avx2.h; blocks of queries: avx2_block.h.

#include "ops/attention/avx2_block.h"

namespace oxbow {
namespace {

/// Two products of 16 bits and their sum to each lane, for two vectors. In this order the core keeps its
/// pipes busiest, and in these registers twelve sums fit without a move; compilers keep neither.
struct MultiplyAdd {
  [[gnu::always_inline]] static inline void add(__m256i weight0, __m256i weight1, int32_t pair,
                                                __m256i (&acc)[2]) {
    __m256i columns = _mm256_set1_epi32(pair), products;
    asm("vpmaddwd %[columns], %[weight0], %[products]\n\t"
        "vpmaddwd %[columns], %[weight1], %[columns]\n\t"
        "vpaddd %[products], %[acc0], %[acc0]\n\t"
        "vpaddd %[columns], %[acc1], %[acc1]"
        : [acc0] "+x"(acc[0]), [acc1] "+x"(acc[1]), [columns] "+x"(columns),
          [products] "=&x"(products)
        : [weight0] "x"(weight0), [weight1] "x"(weight1));
  }
};

}  // namespace

const AttentionKernel<float> attention_f32_f32_f32_avx2 =
    with_blocks(FloatAttention<Avx2>::kKernel, float_block<Avx2Blocks<MultiplyAdd>>);
const AttentionKernel<int8_t> attention_f32_i8_f32_avx2 =
    with_blocks(Int8Attention<Avx2>::kKernel, int8_block<Avx2Blocks<MultiplyAdd>>);

}  // namespace oxbow
