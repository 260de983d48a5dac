// The specification of attention: the steps are in generic.h, the loops over the head width here,
// shaped so that a compiler vectorises them at the baseline of its target; nothing else is tuned.

#include "ops/attention/attention.h"
#include "ops/attention/generic.h"

namespace oxbow {
namespace {

struct Plain {
  static void dots(const float* x, const float* rows, ptrdiff_t stride, size_t count,
                   size_t head_width, float* dots) {
    for (size_t j = 0; j < count; ++j, rows += stride) dots[j] = dot_f32(x, rows, head_width);
  }

  static void dots(const int16_t* x, const int8_t* rows, ptrdiff_t stride, size_t count,
                   size_t head_width, int32_t* dots) {
    for (size_t j = 0; j < count; ++j, rows += stride) {
      int32_t sum = 0;
      for (size_t d = 0; d < head_width; ++d) sum += int32_t{x[d]} * int32_t{int16_t{rows[d]}};
      dots[j] = sum;
    }
  }

  /// By fours, since that saves loads and stores of sums; for floats the order is that of one after
  /// the other.
  template <typename Weight, typename Element, typename Sum>
  static void accumulate(const Weight* w, const Element* rows, size_t stride, size_t count,
                         size_t head_width, Sum* sum) {
    size_t j = 0;
    for (; j + 4 <= count; j += 4) {
      const Sum w0 = w[j], w1 = w[j + 1], w2 = w[j + 2], w3 = w[j + 3];
      const Element* v0 = rows + j * stride;
      const Element* v1 = v0 + stride;
      const Element* v2 = v1 + stride;
      const Element* v3 = v2 + stride;
      for (size_t d = 0; d < head_width; ++d) {
        sum[d] =
            (((sum[d] + w0 * Sum{v0[d]}) + w1 * Sum{v1[d]}) + w2 * Sum{v2[d]}) + w3 * Sum{v3[d]};
      }
    }
    for (; j < count; ++j) {
      const Sum w0 = w[j];
      const Element* v0 = rows + j * stride;
      for (size_t d = 0; d < head_width; ++d) sum[d] += w0 * Sum{v0[d]};
    }
  }
};

}  // namespace

const AttentionKernel<float> attention_f32_f32_f32_ref = FloatAttention<Plain>::kKernel;
const AttentionKernel<int8_t> attention_f32_i8_f32_ref = Int8Attention<Plain>::kKernel;

}  // namespace oxbow
