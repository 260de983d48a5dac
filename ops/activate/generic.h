#pragma once

// The loops of all instruction sets: each compiles them with its flags, and as every element takes
// the same steps the bits are the same. In an unnamed namespace, so that no copy gets outside the
// file that includes this.

#include <cstddef>

#include "ops/activate/activate.h"
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

[[gnu::always_inline]] inline void activate(const ActivateParams& params, const float* x,
                                            size_t count, float* y) {
  // A copy: y might be the params, for all the compiler knows.
  const float limit = params.limit;
  switch (params.activation) {
    case Activation::kNone:
      if (x != y) __builtin_memmove(y, x, count * sizeof(float));
      break;
    case Activation::kRelu:
      for (size_t i = 0; i < count; ++i) y[i] = relu(x[i]);
      break;
    case Activation::kGelu:
      for (size_t i = 0; i < count; ++i) y[i] = gelu(x[i]);
      break;
    case Activation::kGeluTanh:
      for (size_t i = 0; i < count; ++i) y[i] = gelu_tanh(x[i]);
      break;
    case Activation::kSilu:
      for (size_t i = 0; i < count; ++i) y[i] = silu(x[i]);
      break;
    case Activation::kSigmoid:
      for (size_t i = 0; i < count; ++i) y[i] = sigmoid_f32(x[i]);
      break;
    case Activation::kTanh:
      for (size_t i = 0; i < count; ++i) y[i] = tanh_f32(x[i]);
      break;
    case Activation::kGeluQuick:
      for (size_t i = 0; i < count; ++i) y[i] = gelu_quick(x[i]);
      break;
    case Activation::kClamp:
      for (size_t i = 0; i < count; ++i) y[i] = clamp(x[i], limit);
      break;
    case Activation::kReluSquared:
      for (size_t i = 0; i < count; ++i) y[i] = relu_squared(x[i]);
      break;
    case Activation::kEluPlusOne:
      for (size_t i = 0; i < count; ++i) y[i] = elu_plus_one(x[i]);
      break;
    case Activation::kExp:
      for (size_t i = 0; i < count; ++i) y[i] = exp_f32(x[i]);
      break;
    case Activation::kSoftplus:
      for (size_t i = 0; i < count; ++i) y[i] = softplus(x[i]);
      break;
    case Activation::kSoftCap:
      for (size_t i = 0; i < count; ++i) y[i] = soft_cap(x[i], limit);
      break;
  }
}

}  // namespace
}  // namespace oxbow
