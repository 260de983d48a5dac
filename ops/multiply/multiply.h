#pragma once

// y = a * b, element by element; float or int8 output. b may be a row or a column for each head, see
// ops/common/broadcast.h.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

/// `count` elements; y may be a or b.
using MultiplyKernel = void (*)(const float* a, const float* b, size_t count, float* y);

#define OXB_KERNEL(isa, fn) void fn(const float* a, const float* b, size_t count, float* y);
#include "ops/multiply/kernels.inc"
#undef OXB_KERNEL

extern const OpSignature kMultiplySignature;
Status bind_multiply(BindContext& context, RunFunction* run);
Status bind_multiply_vulkan(VulkanBindContext& context);

}  // namespace oxbow
