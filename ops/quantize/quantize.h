#pragma once

// F32 rows to I8 rows, one scale per row and group of elements; formula and rules for NaN,
// infinities and rows of almost nothing in runtime/base/quantize.h.

#include <cstddef>
#include <cstdint>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

/// One row. `groups` divides `width`. Writes round_up(width, 16) codes, the padding as zeros, and
/// `groups` scales: those of the values, or, unless that is 0, `static_scale`, with one group only.
using QuantizeKernel = void (*)(const float* x, size_t width, size_t groups, float static_scale,
                                int8_t* q, float* scales);

#define OXB_KERNEL(isa, fn)                                                           \
  void fn(const float* x, size_t width, size_t groups, float static_scale, int8_t* q, \
          float* scales);
#include "ops/quantize/kernels.inc"
#undef OXB_KERNEL

/// Also for ops that write I8 rows: they compute a float row first.
QuantizeKernel pick_quantize_kernel(bool reference_only);

/// Row `row` of an I8 tensor, with the scales it wants.
inline void quantize_into(QuantizeKernel kernel, const float* x, Tensor& y, size_t row) {
  kernel(x, y.width, y.scale_groups, y.static_scale, y.i8(row), y.row_scales(row));
}

extern const OpSignature kQuantizeSignature;
Status bind_quantize(BindContext& context, RunFunction* run);
Status bind_quantize_vulkan(VulkanBindContext& context);

}  // namespace oxbow
