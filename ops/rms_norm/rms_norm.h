#pragma once

// y_i = x_i / sqrt(sum(x^2) / W + epsilon) * weight_i over each row. A row whose squares overflow
// becomes zeros, as 1 / infinity is.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

struct RmsNormParams {
  const float* weight = nullptr;
  float epsilon = 0;
};

/// One row; x and y may be the same.
using RmsNormKernel = void (*)(const float* x, size_t width, const RmsNormParams& params, float* y);

#define OXB_KERNEL(isa, fn) \
  void fn(const float* x, size_t width, const RmsNormParams& params, float* y);
#include "ops/rms_norm/kernels.inc"
#undef OXB_KERNEL

extern const OpSignature kRmsNormSignature;
Status bind_rms_norm(BindContext& context, RunFunction* run);
Status bind_rms_norm_vulkan(VulkanBindContext& context);

}  // namespace oxbow
