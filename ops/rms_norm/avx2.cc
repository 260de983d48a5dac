#include "ops/rms_norm/generic.h"
#include "ops/rms_norm/rms_norm.h"

namespace oxbow {

void rms_norm_f32_f32_avx2(const float* x, size_t width, const RmsNormParams& params, float* y) {
  rms_norm(x, width, params, y);
}

}  // namespace oxbow
