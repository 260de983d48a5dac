#include "ops/gru_gate/generic.h"
#include "ops/gru_gate/gru_gate.h"

namespace oxbow {

void gru_gate_f32_f32_f32_f32_ref(const float* gi, const float* gh, const float* x, size_t width,
                                  float* y) {
  gru_gate(gi, gh, x, width, y);
}

}  // namespace oxbow
