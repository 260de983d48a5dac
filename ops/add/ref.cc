#include "ops/add/add.h"

namespace oxbow {

void add_f32_f32_f32_ref(const float* a, const float* b, size_t count, float* y) {
  for (size_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

}  // namespace oxbow
