#pragma once

// What the int8 kernels for ARM share: the loops around their tiles, and what becomes of the sums.
// A tile is a struct with
//
//   static constexpr size_t kMaxRows;                            2 or 8
//   template <size_t kRows> static constexpr size_t kBlocks;     1, 2 or 4
//   template <size_t kRows, size_t kBlocks>
//   static void add(const int8_t* x, size_t x_stride, const int8_t* weight, size_t weight_stride,
//                   size_t groups, int32x4_t (&sums)[kRows][2 * kBlocks]);
//
// for 1, 2, 4, 8 rows, at most kMaxRows, by that many blocks of eight channels, or one where no more are left.
// Blocks are `weight_stride` bytes apart and have `groups` groups of four columns. sums[r][h] are
// those of channels 4 h to 4 h + 3. Everything is in an unnamed namespace: no copy compiled with an
// ISA's flags gets outside its file.

#if defined(__ARM_NEON)

#include <cstddef>
#include <cstdint>

#include "ops/common/neon.h"
#include "ops/linear/linear.h"
#include "runtime/base/tensor.h"

namespace oxbow {
namespace {

constexpr size_t kBlockBytes = kBlockRows * kBlockColumns;

inline size_t group_count(const LinearSlice<int8_t, int8_t>& s) {
  return (s.depth + kBlockColumns - 1) / kBlockColumns;
}

// GCC's first scheduling undoes the order in which tiles are written, and then needs more registers.
#if defined(__clang__)
#define OXB_AS_WRITTEN
#else
#define OXB_AS_WRITTEN [[gnu::optimize("no-schedule-insns")]]
#endif

// Cores that execute in order wait for loads right before their uses, where compilers like to put
// them. Neither function is an instruction.

/// What is before stays before, and what is after after.
[[gnu::always_inline]] inline void keep_order() { asm volatile(""); }

/// As keep_order, also for a load whose only use comes later.
template <typename Vector>
[[gnu::always_inline]] inline void keep_before(Vector loaded) {
  asm volatile("" ::"w"(loaded));
}

/// float(sum) * (x_scale * weight_scale) + bias for rows from `row` on.
template <size_t kRows, size_t kHalves>
[[gnu::always_inline]] inline void store_scaled(const int32x4_t (&sums)[kRows][kHalves],
                                                const float* x_scales, const float* weight_scales,
                                                const float* bias, float* y, size_t y_stride) {
  float32x4_t scales[kHalves], biases[kHalves];
#pragma GCC unroll 8
  for (size_t h = 0; h < kHalves; ++h) {
    scales[h] = vld1q_f32(weight_scales + 4 * h);
    biases[h] = bias == nullptr ? vdupq_n_f32(0.0f) : vld1q_f32(bias + 4 * h);
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r, y += y_stride) {
    const float x_scale = x_scales[r];
#pragma GCC unroll 8
    for (size_t h = 0; h < kHalves; ++h) {
      const float32x4_t scale = vmulq_n_f32(scales[h], x_scale);
      vst1q_f32(y + 4 * h, vaddq_f32(vmulq_f32(vcvtq_f32_s32(sums[r][h]), scale), biases[h]));
    }
  }
}

/// The same where fewer channels are left than there are sums.
template <size_t kRows, size_t kHalves>
[[gnu::noinline]] void store_last(const LinearSlice<int8_t, int8_t>& s, size_t row, size_t channel,
                                  const int32x4_t (&sums)[kRows][kHalves]) {
  constexpr size_t kChannels = 4 * kHalves;
  const size_t left = s.channels - channel;
  float scales[kChannels] = {}, bias[kChannels] = {}, y[kRows][kChannels];
  for (size_t c = 0; c < left; ++c) {
    scales[c] = s.weight_scales[channel + c];
    if (s.bias != nullptr) bias[c] = s.bias[channel + c];
  }
  store_scaled(sums, s.x_scales + row, scales, bias, y[0], kChannels);
  for (size_t r = 0; r < kRows; ++r) {
    float* to = s.y + (row + r) * s.y_stride + channel;
    for (size_t c = 0; c < left; ++c) to[c] = y[r][c];
  }
}

/// Of rows from `row` on and channels from `channel` on, as many as there are.
template <size_t kRows, size_t kHalves>
[[gnu::always_inline]] inline void store_sums(const LinearSlice<int8_t, int8_t>& s, size_t row,
                                              size_t channel,
                                              const int32x4_t (&sums)[kRows][kHalves]) {
  if (channel + 4 * kHalves > s.channels) {
    // A copy, so that the sums themselves need no memory.
    int32x4_t copy[kRows][kHalves];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (size_t h = 0; h < kHalves; ++h) copy[r][h] = sums[r][h];
    }
    store_last(s, row, channel, copy);
    return;
  }
  store_scaled(sums, s.x_scales + row, s.weight_scales + channel,
               s.bias == nullptr ? nullptr : s.bias + channel, s.y + row * s.y_stride + channel,
               s.y_stride);
}

template <typename Tile, size_t kRows, size_t kBlocks>
OXB_AS_WRITTEN void linear_tile(const LinearSlice<int8_t, int8_t>& s, size_t row, size_t channel) {
  const size_t groups = group_count(s);
  const size_t stride = groups * kBlockBytes;
  int32x4_t sums[kRows][2 * kBlocks];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (size_t h = 0; h < 2 * kBlocks; ++h) sums[r][h] = vdupq_n_s32(0);
  }
  Tile::template add<kRows, kBlocks>(s.x + row * s.x_stride, s.x_stride,
                                     s.weight + channel / kBlockRows * stride, stride, groups,
                                     sums);
  store_sums(s, row, channel, sums);
}

/// Channels [channel, end) of kRows rows.
template <typename Tile, size_t kRows>
void linear_rows(const LinearSlice<int8_t, int8_t>& s, size_t row, size_t channel, size_t end) {
  constexpr size_t kBlocks = Tile::template kBlocks<kRows>;
  // The last block may have fewer channels than its eight.
  for (; channel + (kBlocks - 1) * kBlockRows < end; channel += kBlocks * kBlockRows) {
    linear_tile<Tile, kRows, kBlocks>(s, row, channel);
  }
  if constexpr (kBlocks > 1) {
    for (; channel < end; channel += kBlockRows) linear_tile<Tile, kRows, 1>(s, row, channel);
  }
}

/// Two blocks of channels for all rows, then the next two: the blocks stay in the first cache, and
/// memory is read once.
template <typename Tile>
void linear_i8(const LinearSlice<int8_t, int8_t>& s) {
  const size_t step = s.rows == 1 ? s.channels : 2 * kBlockRows;
  for (size_t n = 0; n < s.channels; n += step) {
    const size_t end = s.channels - n < step ? s.channels : n + step;
    size_t m = 0;
    for (; m + Tile::kMaxRows <= s.rows; m += Tile::kMaxRows) {
      linear_rows<Tile, Tile::kMaxRows>(s, m, n, end);
    }
    if constexpr (Tile::kMaxRows > 2) {
      if (m + 4 <= s.rows) linear_rows<Tile, 4>(s, m, n, end), m += 4;
      if (m + 2 <= s.rows) linear_rows<Tile, 2>(s, m, n, end), m += 2;
    }
    if (m < s.rows) linear_rows<Tile, 1>(s, m, n, end);
  }
}

}  // namespace
}  // namespace oxbow

#endif  // __ARM_NEON
