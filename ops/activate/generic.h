#pragma once

// The loops of all instruction sets: each compiles them with its flags, and as every element takes
// the same steps the bits are the same. In an unnamed namespace, so that no copy gets outside the
// file that includes this.

#include <cstddef>
#include <type_traits>

#include "ops/activate/activate.h"
#include "ops/common/independent.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

[[gnu::always_inline]] inline float relu(float x) { return x < 0.0f ? 0.0f : x; }

[[gnu::always_inline]] inline float gelu(float x) {
  // 1 + erf without its cancellation for negative x.
  const float tail = erfc_abs_f32(x * 0.707106781f);
  return 0.5f * x * (x < 0.0f ? tail : 2.0f - tail);
}

[[gnu::always_inline]] inline float gelu_tanh(float x) {
  // 2 sqrt(2 / pi) (x + 0.044715 x^3)
  return x * sigmoid_f32(1.59576912f * x * (1.0f + 0.044715f * (x * x)));
}

[[gnu::always_inline]] inline float silu(float x) { return x * sigmoid_f32(x); }

[[gnu::always_inline]] inline float gelu_quick(float x) { return x * sigmoid_f32(1.702f * x); }

[[gnu::always_inline]] inline float clamp(float x, float limit) {
  const float v = x > limit ? limit : x;
  return v < -limit ? -limit : v;
}

[[gnu::always_inline]] inline float relu_squared(float x) {
  const float v = relu(x);
  return v * v;
}

[[gnu::always_inline]] inline float elu_plus_one(float x) {
  const float below = exp_f32(x);
  return x > 0.0f ? x + 1.0f : below;
}

[[gnu::always_inline]] inline float softplus(float x) {
  // Of -|x|, so that nothing overflows and what is small is small from the start.
  return relu(x) + log1p_f32(exp_f32(-abs_f32(x)));
}

[[gnu::always_inline]] inline float soft_cap(float x, float limit) {
  return limit * tanh_f32(x / limit);
}

/// A loop takes whole vectors: what they leave over goes through it in a buffer, as a second copy of every
/// function for single elements would be as large as the first. x and y may be the same.
using ActivateLoop = void (*)(const float* x, size_t vectors, float* y, float limit);

template <auto kFunction>
void activate_vectors(const float* x, size_t vectors, float* y, [[maybe_unused]] float limit) {
  const size_t count = vectors * kLanes;
  OXB_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    if constexpr (std::is_invocable_v<decltype(kFunction), float>) {
      y[i] = kFunction(x[i]);
    } else {
      y[i] = kFunction(x[i], limit);
    }
  }
}

[[gnu::always_inline]] inline ActivateLoop activate_loop(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      return activate_vectors<relu>;
    case Activation::kGelu:
      return activate_vectors<gelu>;
    case Activation::kGeluTanh:
      return activate_vectors<gelu_tanh>;
    case Activation::kSilu:
      return activate_vectors<silu>;
    case Activation::kSigmoid:
      return activate_vectors<sigmoid_f32>;
    case Activation::kTanh:
      return activate_vectors<tanh_f32>;
    case Activation::kGeluQuick:
      return activate_vectors<gelu_quick>;
    case Activation::kClamp:
      return activate_vectors<clamp>;
    case Activation::kReluSquared:
      return activate_vectors<relu_squared>;
    case Activation::kEluPlusOne:
      return activate_vectors<elu_plus_one>;
    case Activation::kExp:
      return activate_vectors<exp_f32>;
    case Activation::kSoftplus:
      return activate_vectors<softplus>;
    case Activation::kSoftCap:
      return activate_vectors<soft_cap>;
  }
  return nullptr;
}

[[gnu::always_inline]] inline void activate(const ActivateParams& params, const float* x,
                                            size_t count, float* y) {
  const ActivateLoop loop = activate_loop(params.activation);
  if (loop == nullptr) {
    if (x != y) __builtin_memmove(y, x, count * sizeof(float));
    return;
  }
  const float limit = params.limit;
  const size_t rest = count % kLanes;
  const size_t whole = count - rest;
  loop(x, whole / kLanes, y, limit);
  if (rest == 0) return;
  float last[kLanes] = {};
  __builtin_memcpy(last, x + whole, rest * sizeof(float));
  loop(last, 1, last, limit);
  __builtin_memcpy(y + whole, last, rest * sizeof(float));
}

}  // namespace
}  // namespace oxbow
