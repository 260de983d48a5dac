#pragma once

// The gates of a GRU cell, with the products with its matrices given, gi of the input and gh of the
// hidden state, each [reset | update | new] side by side, and x the old hidden state:
//
//   r = sigmoid(gi_r + gh_r)
//   z = sigmoid(gi_z + gh_z)
//   n = tanh(gi_n + r gh_n)
//   y = (1 - z) n + z x

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

/// One row: gi and gh have 3 * width elements, x and y width; x and y may be the same.
using GruGateKernel = void (*)(const float* gi, const float* gh, const float* x, size_t width,
                               float* y);

#define OXB_KERNEL(isa, fn) \
  void fn(const float* gi, const float* gh, const float* x, size_t width, float* y);
#include "ops/gru_gate/kernels.inc"
#undef OXB_KERNEL

extern const OpSignature kGruGateSignature;
Status bind_gru_gate(BindContext& context, RunFunction* run);
Status bind_gru_gate_vulkan(VulkanBindContext& context);

}  // namespace oxbow
