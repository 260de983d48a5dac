#pragma once

// The loops around an int8 tile, for ISAs whose tiles give sums of whole blocks of eight channels.
// A tile is a struct with
//
//   template <size_t kRows, size_t kBlocks>
//   static void sums(const int8_t* x, size_t x_stride, const int8_t* weight, size_t weight_stride,
//                    size_t groups, int32_t (*sums)[kBlocks * kBlockRows]);
//
// for one to four rows and one or two blocks, `weight_stride` bytes apart, of `groups` groups of
// four columns. Everything is in an unnamed namespace: no copy compiled with an ISA's flags gets
// outside its file.

#include <cstddef>
#include <cstdint>

#include "ops/linear/linear.h"
#include "runtime/base/tensor.h"

namespace oxbow {
namespace {

/// y = float(sum) * (x_scale * weight_scale) + bias for `count` channels of one row.
[[gnu::always_inline]] inline void store_channels(const LinearSlice<int8_t, int8_t>& s, size_t row,
                                                  size_t channel, const int32_t* sums,
                                                  size_t count) {
  float* y = s.y + row * s.y_stride + channel;
  const float x_scale = s.x_scales[row];
  const float* scales = s.weight_scales + channel;
  if (s.bias == nullptr) {
    for (size_t c = 0; c < count; ++c) {
      y[c] = static_cast<float>(sums[c]) * (x_scale * scales[c]) + 0.0f;
    }
  } else {
    const float* bias = s.bias + channel;
    for (size_t c = 0; c < count; ++c) {
      y[c] = static_cast<float>(sums[c]) * (x_scale * scales[c]) + bias[c];
    }
  }
}

template <typename Tile, size_t kRows, size_t kBlocks>
void linear_tile(const LinearSlice<int8_t, int8_t>& s, size_t row, size_t channel) {
  constexpr size_t kChannels = kBlocks * kBlockRows;
  const size_t groups = (s.depth + kBlockColumns - 1) / kBlockColumns;
  const size_t stride = groups * kBlockRows * kBlockColumns;
  int32_t sums[kRows][kChannels];
  Tile::template sums<kRows, kBlocks>(s.x + row * s.x_stride, s.x_stride,
                                      s.weight + channel / kBlockRows * stride, stride, groups,
                                      sums);
  const size_t left = s.channels - channel;
  for (size_t r = 0; r < kRows; ++r) {
    if (left >= kChannels) {
      store_channels(s, row + r, channel, sums[r], kChannels);
    } else {
      store_channels(s, row + r, channel, sums[r], left);
    }
  }
}

template <typename Tile, size_t kRows>
void linear_rows(const LinearSlice<int8_t, int8_t>& s, size_t row) {
  size_t n = 0;
  for (; n + kBlockRows < s.channels; n += 2 * kBlockRows) linear_tile<Tile, kRows, 2>(s, row, n);
  if (n < s.channels) linear_tile<Tile, kRows, 1>(s, row, n);
}

template <typename Tile>
void linear_i8(const LinearSlice<int8_t, int8_t>& s) {
  size_t m = 0;
  for (; m + 4 <= s.rows; m += 4) linear_rows<Tile, 4>(s, m);
  switch (s.rows - m) {
    case 3:
      linear_rows<Tile, 3>(s, m);
      break;
    case 2:
      linear_rows<Tile, 2>(s, m);
      break;
    case 1:
      linear_rows<Tile, 1>(s, m);
      break;
    default:
      break;
  }
}

}  // namespace
}  // namespace oxbow
