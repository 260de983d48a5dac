// Int8 rows by weights of -1, 0 and 1, in exact integers.

#include "ops/linear/linear.h"
#include "runtime/base/checked.h"

namespace oxbow {

void linear_i8_ternary_f32_ref(const LinearSlice<int8_t, TernaryBlock>& s) {
  const size_t blocks = ceil_div(s.depth, kTernaryBlockColumns);
  for (size_t n = 0; n < s.channels; ++n) {
    const float bias = s.bias == nullptr ? 0.0f : s.bias[n];
    const TernaryBlock* weight = s.weight + n / kBlockRows * blocks;
    for (size_t m = 0; m < s.rows; ++m) {
      const int8_t* x = s.x + m * s.x_stride;
      int32_t sum = 0;
      for (size_t b = 0; b < blocks; ++b) {
        for (size_t i = 0; i < kTernaryBlockColumns && b * kTernaryBlockColumns + i < s.depth;
             ++i) {
          sum += x[b * kTernaryBlockColumns + i] * code_of(weight[b], n % kBlockRows, i);
        }
      }
      s.y[m * s.y_stride + n] =
          static_cast<float>(sum) * (s.x_scales[m] * s.weight_scales[n]) + bias;
    }
  }
}

}  // namespace oxbow
