#include <cstring>

#include "ops/pool/pool.h"

namespace oxbow {

void pool_mean_f32_f32_ref(const float* x, size_t group, size_t width, float* y) {
  std::memcpy(y, x, width * sizeof(float));
  for (size_t g = 1; g < group; ++g) {
    const float* next = x + g * width;
    for (size_t i = 0; i < width; ++i) y[i] += next[i];
  }
  const auto count = static_cast<float>(group);
  for (size_t i = 0; i < width; ++i) y[i] /= count;
}

void pool_max_f32_f32_ref(const float* x, size_t group, size_t width, float* y) {
  std::memcpy(y, x, width * sizeof(float));
  for (size_t g = 1; g < group; ++g) {
    const float* next = x + g * width;
    for (size_t i = 0; i < width; ++i) {
      const bool takes = next[i] > y[i] || next[i] != next[i];
      y[i] = takes ? next[i] : y[i];
    }
  }
}

void pool_mean_neighbours_f32_f32_ref(const float* x, size_t group, size_t width, float* y) {
  for (size_t i = 0; i < width; ++i) pool_mean_f32_f32_ref(x + i * group, group, 1, y + i);
}

void pool_max_neighbours_f32_f32_ref(const float* x, size_t group, size_t width, float* y) {
  for (size_t i = 0; i < width; ++i) pool_max_f32_f32_ref(x + i * group, group, 1, y + i);
}

}  // namespace oxbow
