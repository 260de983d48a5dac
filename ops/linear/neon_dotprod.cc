// NEON with dot product: half a block is four channels by four columns, just what sdot takes.

#include <arm_neon.h>

#include "ops/linear/generic.h"
#include "ops/linear/linear.h"

namespace oxbow {
namespace {

struct Dotprod {
  template <size_t kRows, size_t kBlocks>
  static void sums(const int8_t* x, size_t x_stride, const int8_t* weight, size_t weight_stride,
                   size_t groups, int32_t (*sums)[kBlocks * kBlockRows]) {
    constexpr size_t kHalves = 2 * kBlocks;
    int32x4_t acc[kRows][kHalves];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t h = 0; h < kHalves; ++h) acc[r][h] = vdupq_n_s32(0);
    }
    size_t g = 0;
    // A load of x covers four groups; its padding allows the last of them to be incomplete.
    for (; g + 4 <= groups; g += 4) {
      int8x16_t columns[kRows];
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) columns[r] = vld1q_s8(x + r * x_stride + g * 4);
#pragma GCC unroll 4
      for (size_t h = 0; h < kHalves; ++h) {
        const int8_t* half = weight + h / 2 * weight_stride + g * 32 + h % 2 * 16;
        const int8x16_t w0 = vld1q_s8(half), w1 = vld1q_s8(half + 32);
        const int8x16_t w2 = vld1q_s8(half + 64), w3 = vld1q_s8(half + 96);
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) {
          acc[r][h] = vdotq_laneq_s32(acc[r][h], w0, columns[r], 0);
          acc[r][h] = vdotq_laneq_s32(acc[r][h], w1, columns[r], 1);
          acc[r][h] = vdotq_laneq_s32(acc[r][h], w2, columns[r], 2);
          acc[r][h] = vdotq_laneq_s32(acc[r][h], w3, columns[r], 3);
        }
      }
    }
    for (; g < groups; ++g) {
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        int32_t four;
        __builtin_memcpy(&four, x + r * x_stride + g * 4, sizeof(four));
        const int8x16_t columns = vreinterpretq_s8_s32(vdupq_n_s32(four));
#pragma GCC unroll 4
        for (size_t h = 0; h < kHalves; ++h) {
          const int8_t* half = weight + h / 2 * weight_stride + g * 32 + h % 2 * 16;
          acc[r][h] = vdotq_s32(acc[r][h], vld1q_s8(half), columns);
        }
      }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t h = 0; h < kHalves; ++h) vst1q_s32(sums[r] + 4 * h, acc[r][h]);
    }
  }
};

}  // namespace

void linear_i8_i8_f32_neon_dotprod(const LinearSlice<int8_t, int8_t>& s) { linear_i8<Dotprod>(s); }

}  // namespace oxbow
