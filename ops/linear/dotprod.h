#pragma once

// The tile of dot products: half a block is four channels by four columns, just what sdot takes. In
// an unnamed namespace as all of neon.h; for files compiled with dot product.

#if defined(__ARM_FEATURE_DOTPROD)

#include "ops/linear/neon.h"

namespace oxbow {
namespace {

/// The lane is a constant once the loop around is unrolled.
[[gnu::always_inline]] inline int32x4_t dot_lane(int32x4_t sum, int8x16_t w, int8x16_t columns,
                                                 size_t lane) {
  switch (lane) {
    case 0:
      return vdotq_laneq_s32(sum, w, columns, 0);
    case 1:
      return vdotq_laneq_s32(sum, w, columns, 1);
    case 2:
      return vdotq_laneq_s32(sum, w, columns, 2);
    default:
      return vdotq_laneq_s32(sum, w, columns, 3);
  }
}

struct Dotprod {
  // Eight rows by one block use 16 registers for sums, 8 for x and 4 for weights. A single row reads
  // four blocks, which lie apart, so that memory gives what it can.
  static constexpr size_t kMaxRows = 8;
  template <size_t kRows>
  static constexpr size_t kBlocks = kRows == 8   ? 1
                                    : kRows == 1 ? 4
                                                 : 2;

  /// Four groups at a time, for which one register has the columns of a row. Weights are loaded a
  /// group ahead, and x as soon as its last group is done.
  template <size_t kRows, size_t kBlocks>
  [[gnu::always_inline]] static void add(const int8_t* x, size_t x_stride, const int8_t* weight,
                                         size_t weight_stride, size_t groups,
                                         int32x4_t (&sums)[kRows][2 * kBlocks]) {
    constexpr size_t kHalves = 2 * kBlocks;
    const int8_t* rows[kRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) rows[r] = x + r * x_stride;
    const int8_t* blocks[kBlocks];
#pragma GCC unroll 4
    for (size_t b = 0; b < kBlocks; ++b) blocks[b] = weight + b * weight_stride;
    // Offsets of what comes a group later, in registers: the in-order A55 then issues a load beside a
    // product, which it does not with an offset in the instruction (so says its model in LLVM).
    size_t later[4][2];
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; ++i) {
      later[i / 2][i % 2] = kBlockBytes + i * 16;
      asm("" : "+r"(later[i / 2][i % 2]));
    }
    int8x16_t columns[kRows], w[2][kHalves];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) columns[r] = vld1q_s8(rows[r]);
#pragma GCC unroll 8
    for (size_t h = 0; h < kHalves; ++h) w[0][h] = vld1q_s8(blocks[h / 2] + h % 2 * 16);

    // The products of group g of four, with the loads of what comes after.
    const auto add_group = [&](size_t g, bool load_w, bool load_x, size_t next)
        __attribute__((always_inline)) {
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
        for (size_t h = 0; h < kHalves; ++h) {
          sums[r][h] = dot_lane(sums[r][h], w[g % 2][h], columns[r], g);
          // One load to two products, but for a single row.
          const size_t done = r * kHalves + h;
          const size_t load = kRows == 1 ? done : done / 2;
          if (load_w && load < kHalves && (kRows == 1 || done % 2 == 0)) {
            int8x16_t& to = w[1 - g % 2][load];
            to = vld1q_s8(blocks[load / 2] + later[g][load % 2]);
            if (kRows == 1) keep_before(to);
          }
        }
        if (load_x) columns[r] = vld1q_s8(rows[r] + next);
        keep_order();
      }
    };
    size_t at = 16;
    for (size_t more = (groups - 1) / 4; more != 0; --more, at += 16) {
#pragma GCC unroll 4
      for (size_t g = 0; g < 4; ++g) add_group(g, true, g == 3, at);
#pragma GCC unroll 4
      for (const int8_t*& block : blocks) block += 4 * kBlockBytes;
    }
    const size_t left = (groups - 1) % 4 + 1;
    // One to four groups; the padding of x allowed to load all four.
#pragma GCC unroll 4
    for (size_t g = 0; g < 3; ++g) {
      if (left == g + 1) {
        add_group(g, false, false, 0);
        return;
      }
      add_group(g, true, false, 0);
    }
    add_group(3, false, false, 0);
  }
};

}  // namespace
}  // namespace oxbow

#endif  // __ARM_FEATURE_DOTPROD
