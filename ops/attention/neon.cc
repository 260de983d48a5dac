#include "ops/attention/neon.h"

#include "ops/attention/attention.h"
#include "ops/attention/generic.h"

namespace oxbow {
namespace {

/// Sums of two products fit 16 bits: codes of queries are at least -127.
struct AddProducts {
  [[gnu::always_inline]] static int32x4_t add(int32x4_t sum, int8x16_t x, int8x16_t row) {
    const int16x8_t products = vmull_s8(vget_low_s8(x), vget_low_s8(row));
    return vpadalq_s16(sum, vmlal_high_s8(products, x, row));
  }
};

}  // namespace

const AttentionKernel<float> attention_f32_f32_f32_neon =
    FloatAttention<Neon<AddProducts>>::kKernel;
const AttentionKernel<int8_t> attention_f32_i8_f32_neon = Int8Attention<Neon<AddProducts>>::kKernel;

}  // namespace oxbow
