#pragma once

// y = activation(x W^T + bias) + residual
//
//   x         W                  x W^T + bias
//   F32       F32 row-major      dot(x, w_n) + bias_n
//   F32       I8 in 8x4 blocks   dot(x, float(q_n)) * scale_n + bias_n
//   I8        I8 in 8x4 blocks   float(dot_i32(qx, q_n)) * (scale_x * scale_n) + bias_n
//   F32       F16, BF16          dot(x, float(w_n)) + bias_n: the bits of the same numbers as F32
//   I8        I4                 sum * scale_x + bias_n, where sum begins as 0 and sum = sum + float(dot_i32(qx, q_n)) *
//                                scale_n of each 32 columns, from the first to the last
//   I8        I4Min              the same with sum = sum + (float(dot_i32(qx, q_n)) * scale_n + float(sum_i32(qx)) * min_n)
//   I8 with a scale for each 32 columns, I4 or I4Min: each part that is added is multiplied by it, and the sum by nothing
//   I8        ternary            as I8 in blocks
//
// Float dots have the 8-lane order of runtime/base/math.h. Kernels do this much; activation,
// residual and int8 output are applied by the op with the kernels of those ops. y must not overlap
// an input.

#include <cstddef>
#include <cstdint>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

/// A slice of the output: `rows` rows by `channels` channels. Pointers start at the slice's first
/// row and channel, which is a multiple of 8. Strides are in elements.
template <typename X, typename W>
struct LinearSlice {
  size_t rows = 0;
  size_t channels = 0;
  size_t depth = 0;
  /// [rows][x_stride]. I8: round_up(depth, 16) elements of each row may be read; what is beyond depth is 0.
  const X* x = nullptr;
  size_t x_stride = 0;
  /// [rows][x_groups]; I8 only.
  const float* x_scales = nullptr;
  /// 1, or, of I4Block and I4MinBlock only, one for each 32 columns, which are then whole.
  size_t x_groups = 1;
  /// F32: [channels][depth]. I8: [ceil(channels/8)][ceil(depth/4)][8][4], padding included. Quantising
  /// gives codes from -127 on; of -128, which only a strange file holds, AVX2 may mistake the sign.
  /// F16, BF16: [channels][depth]. I4Block, I4MinBlock: [ceil(channels/8)][ceil(depth/32)]. TernaryBlock:
  /// [ceil(channels/8)][ceil(depth/16)].
  const W* weight = nullptr;
  /// One per channel; I8 and ternary only.
  const float* weight_scales = nullptr;
  /// One per channel, or null.
  const float* bias = nullptr;
  float* y = nullptr;
  size_t y_stride = 0;
};

/// Sums of this many products of any two int8 stay inside int32, -128 included: a hostile file may
/// hold it, and signed overflow is not for files to cause.
inline constexpr uint32_t kMaxI8Depth = 131000;
static_assert(int64_t{128} * 128 * (kMaxI8Depth + 4) <= INT32_MAX);

template <typename X, typename W>
using LinearKernel = void (*)(const LinearSlice<X, W>& slice);

// The first two arguments are the element types of x and W.
#define OXB_KERNEL(x, w, isa, fn) void fn(const LinearSlice<x, w>& slice);
#include "ops/linear/kernels.inc"
#undef OXB_KERNEL

extern const OpSignature kLinearSignature;
Status bind_linear(BindContext& context, RunFunction* run);
Status bind_linear_vulkan(VulkanBindContext& context);
Status bind_linear_npu(NpuBindContext& context);

struct NpuCodes;
struct NpuRows;
/// The rest of a step for rows whose products came from elsewhere; `params` are those of bind_linear.
Status finish_linear(RunContext& context, const void* params, const NpuRows& rows);
/// The codes that NPUs are compared with, as NpuFormula.
void formula_linear(const void* params, const NpuCodes& codes, const int8_t* x, size_t rows,
                    int8_t* y);

}  // namespace oxbow
