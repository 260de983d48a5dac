// The loops of generic.h in vectors of 512 bits.

#include "ops/activate/activate.h"
#include "ops/activate/generic.h"

namespace oxbow {

void activate_f32_f32_avx512_vnni(const ActivateParams& params, const float* x, size_t count,
                                  float* y) {
  activate(params, x, count, y);
}

}  // namespace oxbow
