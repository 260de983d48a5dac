#include "ops/quantize/quantize.h"
#include "runtime/base/quantize.h"

namespace oxbow {

void quantize_f32_i8_ref(const float* x, size_t width, size_t groups, float static_scale, int8_t* q,
                         float* scales) {
  if (static_scale != 0.0f) {
    quantize_row_static(x, width, static_scale, q, scales);
  } else {
    quantize_row(x, width, groups, q, scales);
  }
}

}  // namespace oxbow
