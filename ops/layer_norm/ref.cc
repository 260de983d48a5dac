#include <cmath>

#include "ops/layer_norm/layer_norm.h"
#include "runtime/base/math.h"

namespace oxbow {

void layer_norm_f32_f32_ref(const float* x, size_t width, const LayerNormParams& params, float* y) {
  const auto count = static_cast<float>(width);
  const float mean = sum_f32(width, [=](size_t i) { return x[i]; }) / count;
  const float variance =
      sum_f32(width, [=](size_t i) { return (x[i] - mean) * (x[i] - mean); }) / count;
  const float factor = 1.0f / std::sqrt(variance + params.epsilon);
  const float* weight = params.weight;
  const float* bias = params.bias;
  for (size_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * factor * weight[i] + bias[i];
}

}  // namespace oxbow
