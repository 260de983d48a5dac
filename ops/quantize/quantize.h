#pragma once

// F32 rows to I8 rows, one scale per row and group of elements; formula and rules for NaN,
// infinities and rows of almost nothing in runtime/base/quantize.h.

#include <cstddef>
#include <cstdint>

#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

/// One row. `groups` divides `width`. Writes round_up(width, 16) codes, the padding as zeros, and
/// `groups` scales.
using QuantizeKernel = void (*)(const float* x, size_t width, size_t groups, int8_t* q,
                                float* scales);

#define OXB_KERNEL(isa, fn) \
  void fn(const float* x, size_t width, size_t groups, int8_t* q, float* scales);
#include "ops/quantize/kernels.inc"
#undef OXB_KERNEL

/// Also for ops that write I8 rows: they compute a float row first.
QuantizeKernel pick_quantize_kernel(bool reference_only);

Status bind_quantize(BindContext& context, RunFunction* run);

}  // namespace oxbow
