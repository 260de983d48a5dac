#pragma once

// y = f(x), element by element:
//   relu       max(x, 0)
//   gelu       x * Phi(x) = x * (1 + erf(x / sqrt 2)) / 2
//   gelu_tanh  x * (1 + tanh u) / 2 = x * sigmoid(2 u),  u = sqrt(2 / pi) (x + 0.044715 x^3)
//   silu       x * sigmoid(x)
//   sigmoid    1 / (1 + e^-x)
//   tanh       tanh x
//   gelu_quick x * sigmoid(1.702 x)
//   clamp      x between -limit and limit
//   relu_squared  max(x, 0)^2
//   elu_plus_one  x + 1 for x > 0, else e^x
//   exp        e^x
//   softplus   ln(1 + e^x)
//   soft_cap   limit * tanh(x / limit)
// NaN stays NaN.

#include <cstddef>
#include <cstdint>

#include "ops/common/signature.h"
#include "runtime/base/cpu.h"
#include "runtime/op.h"

namespace oxbow {

/// As schema::Activation, without its header.
enum class Activation : uint8_t {
  kNone = 0,
  kRelu = 1,
  kGelu = 2,
  kGeluTanh = 3,
  kSilu = 4,
  kSigmoid = 5,
  kTanh = 6,
  kGeluQuick = 7,
  kClamp = 8,
  kReluSquared = 9,
  kEluPlusOne = 10,
  kExp = 11,
  kSoftplus = 12,
  kSoftCap = 13,
};

struct ActivateParams {
  Activation activation = Activation::kNone;
  /// Clamp and soft_cap only: finite and positive.
  float limit = 0;
};

/// `count` elements; x and y may be the same.
using ActivateKernel = void (*)(const ActivateParams& params, const float* x, size_t count,
                                float* y);

#define OXB_KERNEL(isa, fn) \
  void fn(const ActivateParams& params, const float* x, size_t count, float* y);
#include "ops/activate/kernels.inc"
#undef OXB_KERNEL

ActivateKernel pick_activate_kernel(bool reference_only);

/// Takes over a file's options, or says what is wrong with them. For ops that also activate.
Status check_activation(BindContext& context, uint32_t activation, float limit,
                        ActivateParams* params);

extern const OpSignature kActivateSignature;
Status bind_activate(BindContext& context, RunFunction* run);
Status bind_activate_vulkan(VulkanBindContext& context);

}  // namespace oxbow
