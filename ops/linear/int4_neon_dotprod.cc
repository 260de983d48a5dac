// NEON with dot products: four columns of four channels are one instruction.

#include "ops/linear/low_bits_neon.h"

namespace oxbow {
namespace {

struct DotProducts {
  using Sum = int32x4_t;
  static Sum zero() { return vdupq_n_s32(0); }

  [[gnu::always_inline]] static Sum add(Sum sum, int8x16_t codes, int8x16_t columns, size_t quad) {
    switch (quad) {
      case 0:
        return vdotq_laneq_s32(sum, codes, columns, 0);
      case 1:
        return vdotq_laneq_s32(sum, codes, columns, 1);
      case 2:
        return vdotq_laneq_s32(sum, codes, columns, 2);
      default:
        return vdotq_laneq_s32(sum, codes, columns, 3);
    }
  }

  static int32x4_t finish(Sum sum) { return sum; }
};

}  // namespace

void linear_i8_i4_f32_neon_dotprod(const LinearSlice<int8_t, I4Block>& s) {
  linear_i4<DotProducts>(I4Slice(s));
}
void linear_i8_i4min_f32_neon_dotprod(const LinearSlice<int8_t, I4MinBlock>& s) {
  linear_i4<DotProducts>(I4Slice(s));
}
void linear_i8_ternary_f32_neon_dotprod(const LinearSlice<int8_t, TernaryBlock>& s) {
  linear_ternary<DotProducts>(s);
}

}  // namespace oxbow
