#include "ops/lerp/lerp.h"

namespace oxbow {

void lerp_f32_f32_f32_f32_ref(const float* a, const float* b, const float* mix, size_t count,
                              float* y) {
  for (size_t i = 0; i < count; ++i) y[i] = a[i] + (b[i] - a[i]) * mix[i];
}

}  // namespace oxbow
