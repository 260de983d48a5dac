// Adjacent pairs are taken apart as they are loaded, and put together as they are stored.

#include <arm_neon.h>

#include "ops/rope/rope.h"

namespace oxbow {

void rope_f32_f32_f32_neon(const float* x, const float* angles, const RopeParams& params,
                           float* y) {
  const size_t pairs = params.turned / 2;
  if (!params.adjacent || pairs < 4) {
    rope_f32_f32_f32_ref(x, angles, params, y);
    return;
  }
  for (size_t head = 0; head < params.heads; ++head) {
    size_t i = 0;
    for (; i + 4 <= pairs; i += 4) {
      const float32x4x2_t from = vld2q_f32(x + 2 * i);
      const float32x4_t sin = vld1q_f32(angles + i), cos = vld1q_f32(angles + pairs + i);
      float32x4x2_t to;
      to.val[0] = vsubq_f32(vmulq_f32(from.val[0], cos), vmulq_f32(from.val[1], sin));
      to.val[1] = vaddq_f32(vmulq_f32(from.val[1], cos), vmulq_f32(from.val[0], sin));
      vst2q_f32(y + 2 * i, to);
    }
    for (; i < pairs; ++i) {
      const float a = x[2 * i], b = x[2 * i + 1];
      y[2 * i] = a * angles[pairs + i] - b * angles[i];
      y[2 * i + 1] = b * angles[pairs + i] + a * angles[i];
    }
    for (size_t j = params.turned; j < params.head_width; ++j) y[j] = x[j];
    x += params.head_width;
    y += params.head_width;
  }
}

}  // namespace oxbow
