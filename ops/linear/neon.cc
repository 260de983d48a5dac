// NEON: products in 16 bits, which hold any of two int8, added in pairs to sums in 32.

#include <arm_neon.h>

#include "ops/linear/generic.h"
#include "ops/linear/linear.h"

namespace oxbow {
namespace {

struct Neon {
  /// One block at a time: its eight channels need four registers of sums for each row.
  template <size_t kRows, size_t kBlocks>
  static void sums(const int8_t* x, size_t x_stride, const int8_t* weight, size_t weight_stride,
                   size_t groups, int32_t (*sums)[kBlocks * kBlockRows]) {
    for (size_t b = 0; b < kBlocks; ++b) {
      const int8_t* w = weight + b * weight_stride;
      // [row][channels 0 and 1, 2 and 3, ...], two sums for each channel.
      int32x4_t acc[kRows][4];
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (size_t i = 0; i < 4; ++i) acc[r][i] = vdupq_n_s32(0);
      }
      for (size_t g = 0; g < groups; ++g, w += kBlockRows * kBlockColumns) {
        const int8x16_t low = vld1q_s8(w), high = vld1q_s8(w + 16);
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) {
          int32_t four;
          __builtin_memcpy(&four, x + r * x_stride + g * kBlockColumns, sizeof(four));
          const int8x16_t columns = vreinterpretq_s8_s32(vdupq_n_s32(four));
          acc[r][0] = vpadalq_s16(acc[r][0], vmull_s8(vget_low_s8(low), vget_low_s8(columns)));
          acc[r][1] = vpadalq_s16(acc[r][1], vmull_high_s8(low, columns));
          acc[r][2] = vpadalq_s16(acc[r][2], vmull_s8(vget_low_s8(high), vget_low_s8(columns)));
          acc[r][3] = vpadalq_s16(acc[r][3], vmull_high_s8(high, columns));
        }
      }
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        vst1q_s32(sums[r] + b * kBlockRows, vpaddq_s32(acc[r][0], acc[r][1]));
        vst1q_s32(sums[r] + b * kBlockRows + 4, vpaddq_s32(acc[r][2], acc[r][3]));
      }
    }
  }
};

}  // namespace

void linear_i8_i8_f32_neon(const LinearSlice<int8_t, int8_t>& s) { linear_i8<Neon>(s); }

}  // namespace oxbow
