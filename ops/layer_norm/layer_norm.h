#pragma once

// y_i = (x_i - mean) / sqrt(variance + epsilon) * weight_i + bias_i over each row, with
// mean = sum(x) / W and variance = sum((x - mean)^2) / W: two passes, since one pass cancels. With `deviation` the
// divisor is sqrt(sum((x - mean)^2) / (W - 1)) + epsilon, as in layers that predate nn.LayerNorm.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

struct LayerNormParams {
  const float* weight = nullptr;
  const float* bias = nullptr;
  float epsilon = 0;
  bool deviation = false;
};

/// One row; x and y may be the same.
using LayerNormKernel = void (*)(const float* x, size_t width, const LayerNormParams& params,
                                 float* y);

#define OXB_KERNEL(isa, fn) \
  void fn(const float* x, size_t width, const LayerNormParams& params, float* y);
#include "ops/layer_norm/kernels.inc"
#undef OXB_KERNEL

extern const OpSignature kLayerNormSignature;
Status bind_layer_norm(BindContext& context, RunFunction* run);
Status bind_layer_norm_vulkan(VulkanBindContext& context);

}  // namespace oxbow
