#pragma once

// y = a + (b - a) * mix, element by element; mix has a row for each of a's, or one for all.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

/// `count` elements; y may be any of the others.
using LerpKernel = void (*)(const float* a, const float* b, const float* mix, size_t count,
                            float* y);

#define OXB_KERNEL(isa, fn) \
  void fn(const float* a, const float* b, const float* mix, size_t count, float* y);
#include "ops/lerp/kernels.inc"
#undef OXB_KERNEL

extern const OpSignature kLerpSignature;

Status bind_lerp(BindContext& context, RunFunction* run);
Status bind_lerp_vulkan(VulkanBindContext& context);

}  // namespace oxbow
