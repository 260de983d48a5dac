// NEON as every 64-bit ARM core has it: products are added in 16 bits.

#include "ops/linear/low_bits_neon.h"

namespace oxbow {
namespace {

struct Products {
  /// Channels 0 and 1, then 2 and 3, a lane for each column.
  struct Sum {
    int16x8_t first, second;
  };
  static Sum zero() { return {vdupq_n_s16(0), vdupq_n_s16(0)}; }

  [[gnu::always_inline]] static int8x16_t repeat(int8x16_t columns, size_t quad) {
    const int32x4_t four = vreinterpretq_s32_s8(columns);
    switch (quad) {
      case 0:
        return vreinterpretq_s8_s32(vdupq_laneq_s32(four, 0));
      case 1:
        return vreinterpretq_s8_s32(vdupq_laneq_s32(four, 1));
      case 2:
        return vreinterpretq_s8_s32(vdupq_laneq_s32(four, 2));
      default:
        return vreinterpretq_s8_s32(vdupq_laneq_s32(four, 3));
    }
  }

  [[gnu::always_inline]] static Sum add(Sum sum, int8x16_t codes, int8x16_t columns, size_t quad) {
    const int8x16_t repeated = repeat(columns, quad);
    return {vmlal_s8(sum.first, vget_low_s8(codes), vget_low_s8(repeated)),
            vmlal_high_s8(sum.second, codes, repeated)};
  }

  [[gnu::always_inline]] static int32x4_t finish(Sum sum) {
    return vpaddq_s32(vpaddlq_s16(sum.first), vpaddlq_s16(sum.second));
  }
};

}  // namespace

void linear_i8_i4_f32_neon(const LinearSlice<int8_t, I4Block>& s) {
  linear_i4<Products>(I4Slice(s));
}
void linear_i8_i4min_f32_neon(const LinearSlice<int8_t, I4MinBlock>& s) {
  linear_i4<Products>(I4Slice(s));
}
void linear_i8_ternary_f32_neon(const LinearSlice<int8_t, TernaryBlock>& s) {
  linear_ternary<Products>(s);
}

}  // namespace oxbow
