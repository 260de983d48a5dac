#pragma once

// A filter over time for each channel:
//
//   y[t][c] = bias[c] + sum over taps a of k[head of c][a] * x[t + a - left]
//
// Each of `heads` filters serves width / heads channels side by side. Rows before the run are those
// of a ring of `left` rows, the newest last; rows that do not exist are zeros. The filters are
// weights, or, if dynamic, made by the model for each row; either may be turned into a softmax over
// its taps first. Sums begin with the bias, or 0, and go from the first tap to the last, without those of
// missing rows.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

struct ConvolutionParams {
  size_t width = 0;
  size_t heads = 0;
  size_t taps = 0;
};

/// Adds `rows` taps to one row: y[c] += k[head of c * taps + a] * x[a * width + c], a from 0 on. k
/// points at the first head's first of these taps.
using ConvolutionKernel = void (*)(const float* x, size_t rows, const float* k,
                                   const ConvolutionParams& params, float* y);

#define OXB_KERNEL(isa, fn) \
  void fn(const float* x, size_t rows, const float* k, const ConvolutionParams& params, float* y);
#include "ops/convolution/kernels.inc"
#undef OXB_KERNEL

extern const OpSignature kConvolutionSignature;
Status bind_convolution(BindContext& context, RunFunction* run);
Status bind_convolution_vulkan(VulkanBindContext& context);

}  // namespace oxbow
