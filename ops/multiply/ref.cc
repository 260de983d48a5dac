#include "ops/multiply/multiply.h"

namespace oxbow {

void multiply_f32_f32_f32_ref(const float* a, const float* b, size_t count, float* y) {
  for (size_t i = 0; i < count; ++i) y[i] = a[i] * b[i];
}

}  // namespace oxbow
