#include "ops/feature_map/feature_map.h"
#include "runtime/base/math.h"

namespace oxbow {

void feature_map_f32_f32_ref(const float* x, size_t width, size_t order, float epsilon, float* y) {
  const size_t n = 2 * width;
  const auto r = [=](size_t j) {
    const float value = j < width ? x[j] : -x[j - width];
    return value < 0.0f ? 0.0f : value;
  };
  for (size_t i = 1; i <= order; ++i) {
    for (size_t j = 0; j < n; ++j) y[(i - 1) * n + j] = r(j) * r((j + n - i % n) % n);
  }
  const float sum = sum_f32(order * n, [=](size_t j) { return y[j]; }) + epsilon;
  for (size_t j = 0; j < order * n; ++j) y[j] = y[j] / sum;
}

}  // namespace oxbow
