// Float rows by weights of 16 bits.

#include "ops/linear/linear.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

template <typename W>
void linear_half(const LinearSlice<float, W>& s) {
  for (size_t n = 0; n < s.channels; ++n) {
    const W* weight = s.weight + n * s.depth;
    const float bias = s.bias == nullptr ? 0.0f : s.bias[n];
    for (size_t m = 0; m < s.rows; ++m) {
      const float* x = s.x + m * s.x_stride;
      s.y[m * s.y_stride + n] = sum_f32(
                                    s.depth, [=
      ](size_t i) __attribute__((always_inline)) { return x[i] * to_f32(weight[i]); }) +
                                bias;
    }
  }
}

}  // namespace

void linear_f32_f16_f32_ref(const LinearSlice<float, F16>& s) { linear_half(s); }
void linear_f32_bf16_f32_ref(const LinearSlice<float, BF16>& s) { linear_half(s); }

}  // namespace oxbow
