#include "ops/embedding/embedding.h"

namespace oxbow {

void embedding_f32_f32_ref(const float* row, size_t width, float scale, float* y) {
  for (size_t i = 0; i < width; ++i) y[i] = row[i] * scale;
}

void embedding_i8_f32_ref(const int8_t* row, size_t width, float scale, float* y) {
  for (size_t i = 0; i < width; ++i) y[i] = static_cast<float>(row[i]) * scale;
}

void embedding_f16_f32_ref(const F16* row, size_t width, float scale, float* y) {
  for (size_t i = 0; i < width; ++i) y[i] = to_f32(row[i]) * scale;
}

void embedding_bf16_f32_ref(const BF16* row, size_t width, float scale, float* y) {
  for (size_t i = 0; i < width; ++i) y[i] = to_f32(row[i]) * scale;
}

}  // namespace oxbow
