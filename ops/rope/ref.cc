#include "ops/rope/rope.h"

namespace oxbow {

void rope_f32_f32_f32_ref(const float* x, const float* angles, const RopeParams& params, float* y) {
  const size_t pairs = params.turned / 2;
  const size_t step = params.adjacent ? 2 : 1;
  const size_t apart = params.adjacent ? 1 : pairs;
  for (size_t head = 0; head < params.heads; ++head) {
    for (size_t i = 0; i < pairs; ++i) {
      const float a = x[i * step], b = x[i * step + apart];
      const float sin = angles[i], cos = angles[pairs + i];
      y[i * step] = a * cos - b * sin;
      y[i * step + apart] = b * cos + a * sin;
    }
    for (size_t i = params.turned; i < params.head_width; ++i) y[i] = x[i];
    x += params.head_width;
    y += params.head_width;
  }
}

}  // namespace oxbow
