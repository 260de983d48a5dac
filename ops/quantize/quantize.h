#pragma once

// F32 rows to I8 rows, one scale per row and group of elements; formula and rules for NaN,
// infinities and rows of almost nothing in runtime/base/quantize.h. A tensor may want its rows turned before
// (runtime/base/hadamard.h).

#include <cstddef>
#include <cstdint>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

/// How rows of a tensor are written, see Tensor.
struct RowForm {
  /// Divide the width.
  size_t groups = 1;
  /// Unless 0: the scale of every row; only with one group.
  float static_scale = 0.0f;
  /// Unless 0: what rows are turned in, see runtime/base/hadamard.h.
  size_t hadamard = 0;
};

/// One row. Turns x, if so wanted, where it is. Then writes round_up(width, 16) codes, the padding as zeros, and the
/// scales; not so where `q` is null, because the row stays float.
using QuantizeKernel = void (*)(float* x, size_t width, const RowForm& form, int8_t* q,
                                float* scales);

#define OXB_KERNEL(isa, fn) \
  void fn(float* x, size_t width, const RowForm& form, int8_t* q, float* scales);
#include "ops/quantize/kernels.inc"
#undef OXB_KERNEL

/// Also for ops that write I8 rows: they compute a float row first.
QuantizeKernel pick_quantize_kernel(bool reference_only);

/// Row `row` of an I8 tensor, with the scales it wants. `x` is overwritten where rows are turned.
inline void quantize_into(QuantizeKernel kernel, float* x, Tensor& y, size_t row) {
  kernel(x, y.width, {y.scale_groups, y.static_scale, y.hadamard}, y.i8(row), y.row_scales(row));
}

/// Row `row` of an F32 tensor that has been computed where it belongs.
inline void finish_row(QuantizeKernel kernel, Tensor& y, size_t row) {
  if (y.hadamard == 0) return;
  kernel(y.f32(row), y.width, {.hadamard = y.hadamard}, nullptr, nullptr);
}

extern const OpSignature kQuantizeSignature;
Status bind_quantize(BindContext& context, RunFunction* run);
Status bind_quantize_vulkan(VulkanBindContext& context);

}  // namespace oxbow
