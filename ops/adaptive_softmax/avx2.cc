#include "ops/adaptive_softmax/adaptive_softmax.h"
#include "ops/adaptive_softmax/generic.h"

namespace oxbow {

void adaptive_softmax_f32_f32_avx2(const float* x, size_t count, float base, float* y) {
  adaptive_softmax(x, count, base, y);
}

}  // namespace oxbow
