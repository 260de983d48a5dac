#include "ops/quantize/quantize.h"
#include "runtime/base/quantize.h"

namespace oxbow {

void quantize_f32_i8_avx2(const float* x, size_t width, size_t groups, int8_t* q, float* scales) {
  quantize_row(x, width, groups, q, scales);
}

}  // namespace oxbow
