#pragma once

// The result of a linear layer by its formula in double.

#include <cmath>
#include <cstddef>

#include "ops/testing/op_runner.h"

namespace oxbow::linear_test {

using testing::TestTensor;

/// x W^T + bias of one output, in double, and how far floats may be from it.
struct Expected {
  double value = 0, tolerance = 0;
};

inline Expected formula(const TestTensor& x, size_t row, const TestTensor& weight, size_t channel,
                        const TestTensor* bias) {
  Expected e;
  double magnitude = 0;
  for (size_t k = 0; k < x.width; ++k) {
    e.value += x.value(row, k) * weight.value(channel, k);
    magnitude += std::fabs(x.value(row, k) * weight.value(channel, k));
  }
  if (bias != nullptr) e.value += bias->value(0, channel);
  // Each product is rounded once and then by at most depth / 8 + 1 additions of its lane, three of
  // the combination, the scale and the bias, each by 2^-24 of what is summed so far.
  const double sum = magnitude + (bias == nullptr ? 0 : std::fabs(bias->value(0, channel)));
  e.tolerance = (x.width / 8.0 + 8) * 0x1p-24 * sum + 1e-30;
  return e;
}

}  // namespace oxbow::linear_test
