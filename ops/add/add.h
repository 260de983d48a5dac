#pragma once

// y = a + b, element by element. b may be a row or a column for each head, see ops/common/broadcast.h.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

/// `count` elements; y may be a or b.
using AddKernel = void (*)(const float* a, const float* b, size_t count, float* y);

#define OXB_KERNEL(isa, fn) void fn(const float* a, const float* b, size_t count, float* y);
#include "ops/add/kernels.inc"
#undef OXB_KERNEL

AddKernel pick_add_kernel(bool reference_only);

extern const OpSignature kAddSignature;
Status bind_add(BindContext& context, RunFunction* run);
Status bind_add_vulkan(VulkanBindContext& context);

}  // namespace oxbow
