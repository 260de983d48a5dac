#include "ops/quantize/quantize.h"
#include "runtime/base/hadamard.h"
#include "runtime/base/quantize.h"

namespace oxbow {

void quantize_f32_i8_ref(float* x, size_t width, const RowForm& form, int8_t* q, float* scales) {
  if (form.hadamard != 0) hadamard_row(x, width, form.hadamard);
  if (q == nullptr) return;
  if (form.static_scale != 0.0f) {
    quantize_row_static(x, width, form.static_scale, q, scales);
  } else {
    quantize_row(x, width, form.groups, q, scales);
  }
}

}  // namespace oxbow
