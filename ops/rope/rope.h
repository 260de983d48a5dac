#pragma once

// Turns the first R elements of every head of a row, taken as R / 2 pairs, each by its own angle:
//   (a, b) -> (a cos - b sin, b cos + a sin)
// Pairs are (i, i + R / 2), or (2i, 2i + 1) if adjacent. The rest of the head stays. Float or int8
// output.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

struct RopeParams {
  size_t heads = 0;
  size_t head_width = 0;
  /// Elements of each head that turn: even, at most head_width.
  size_t turned = 0;
  bool adjacent = false;
};

/// One row; `angles` is turned / 2 sines, then as many cosines. y may be x.
using RopeKernel = void (*)(const float* x, const float* angles, const RopeParams& params,
                            float* y);

#define OXB_KERNEL(isa, fn) \
  void fn(const float* x, const float* angles, const RopeParams& params, float* y);
#include "ops/rope/kernels.inc"
#undef OXB_KERNEL

extern const OpSignature kRopeSignature;
Status bind_rope(BindContext& context, RunFunction* run);
Status bind_rope_vulkan(VulkanBindContext& context);

}  // namespace oxbow
