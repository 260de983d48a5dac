#pragma once

// The loops of all instruction sets: each compiles them with its flags, and as sums have the lanes
// of math.h the bits are the same. In an unnamed namespace, so that no copy gets outside the file
// that includes this.

#include <cstddef>

#include "ops/adaptive_softmax/adaptive_softmax.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

[[gnu::always_inline]] inline void adaptive_softmax(const float* x, size_t count, float base,
                                                    float* y) {
  const float most = max_f32(count, -__builtin_inff(), [=](size_t i) { return x[i]; });
  const float sum = sum_f32(count, [=](size_t i) { return exp_f32(x[i] - most); });
  const float log_sum = log_f32(sum);
  for (size_t i = 0; i < count; ++i) y[i] = ((x[i] - most) - log_sum) + base;
}

}  // namespace
}  // namespace oxbow
