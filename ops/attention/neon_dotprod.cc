#include "ops/attention/attention.h"
#include "ops/attention/generic.h"
#include "ops/attention/neon.h"

namespace oxbow {
namespace {

struct AddDots {
  [[gnu::always_inline]] static int32x4_t add(int32x4_t sum, int8x16_t x, int8x16_t row) {
    return vdotq_s32(sum, x, row);
  }
};

}  // namespace

const AttentionKernel<int8_t> attention_f32_i8_f32_neon_dotprod =
    Int8Attention<Neon<AddDots>>::kKernel;

}  // namespace oxbow
