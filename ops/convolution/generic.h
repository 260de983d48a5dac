#pragma once

// The loops of all instruction sets: each compiles them with its flags, and as every channel takes
// the same steps the bits are the same. In an unnamed namespace, so that no copy gets outside the
// file that includes this.

#include <cstddef>

#include "ops/convolution/convolution.h"

namespace oxbow {
namespace {

/// A filter for each channel: blocks of channels, so that the loop over them is the inner one here
/// too and their filters stay in the cache from tap to tap.
[[gnu::always_inline]] inline void convolve_single(const float* x, size_t rows, const float* k,
                                                   const ConvolutionParams& params, float* y) {
  constexpr size_t kBlock = 64;
  for (size_t begin = 0; begin < params.width; begin += kBlock) {
    const size_t end = params.width - begin < kBlock ? params.width : begin + kBlock;
    for (size_t a = 0; a < rows; ++a) {
      const float* from = x + a * params.width;
      for (size_t c = begin; c < end; ++c) y[c] += k[c * params.taps + a] * from[c];
    }
  }
}

[[gnu::always_inline]] inline void convolve(const float* x, size_t rows, const float* k,
                                            const ConvolutionParams& params, float* y) {
  const size_t width = params.width;
  const size_t channels = width / params.heads;
  if (channels == 1) {
    convolve_single(x, rows, k, params, y);
    return;
  }
  for (size_t head = 0; head < params.heads; ++head) {
    for (size_t a = 0; a < rows; ++a) {
      const float factor = k[head * params.taps + a];
      const float* from = x + a * width + head * channels;
      float* to = y + head * channels;
      for (size_t c = 0; c < channels; ++c) to[c] += factor * from[c];
    }
  }
}

}  // namespace
}  // namespace oxbow
