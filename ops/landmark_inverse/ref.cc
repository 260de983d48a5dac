#include <algorithm>
#include <limits>
#include <utility>

#include "ops/landmark_inverse/landmark_inverse.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

/// c = a b, all n by n; a sum goes over the inner index in order.
void multiply(const float* a, const float* b, size_t n, float* c) {
  std::fill(c, c + n * n, 0.0f);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      const float factor = a[i * n + j];
      for (size_t k = 0; k < n; ++k) c[i * n + k] += factor * b[j * n + k];
    }
  }
}

/// a <- diagonal I - a
void subtract_from(float diagonal, float* a, size_t n) {
  for (size_t i = 0; i < n * n; ++i) a[i] = -a[i];
  for (size_t i = 0; i < n; ++i) a[i * n + i] += diagonal;
}

}  // namespace

float landmark_scores_ref(const LandmarkHead& head, float* a) {
  const size_t n = head.landmarks;
  for (size_t i = 0; i < n; ++i) {
    float* row = a + i * n;
    for (size_t j = 0; j < n; ++j) {
      row[j] = head.scale * dot_f32(head.q + i * head.stride, head.k + j * head.stride, head.keys);
    }
    const float top =
        max_f32(n, -std::numeric_limits<float>::infinity(), [&](size_t j) { return row[j]; });
    for (size_t j = 0; j < n; ++j) row[j] = exp_f32(row[j] - top);
    const float sum = sum_f32(n, [&](size_t j) { return row[j]; });
    for (size_t j = 0; j < n; ++j) row[j] /= sum;
  }
  float largest = 0;
  for (size_t j = 0; j < n; ++j) {
    const float sum = sum_f32(n, [&](size_t i) { return a[i * n + j]; });
    largest = sum > largest ? sum : largest;
  }
  return largest;
}

void landmark_inverse_ref(const LandmarkHead& head, const float* a, float divisor, float* room) {
  const size_t n = head.landmarks, all = n * n;
  float* z = room;
  float* az = z + all;
  float* left = az + all;
  float* right = left + all;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) z[j * n + i] = a[i * n + j] / divisor;
  }
  for (size_t step = 0; step < head.iterations; ++step) {
    multiply(a, z, n, az);
    std::copy(az, az + all, left);
    for (const float diagonal : {7.0f, 15.0f, 13.0f}) {
      subtract_from(diagonal, left, n);
      // The last one is multiplied by Z instead.
      multiply(diagonal == 13.0f ? z : az, left, n, right);
      std::swap(left, right);
    }
    for (size_t i = 0; i < all; ++i) z[i] = 0.25f * left[i];
  }
  for (size_t i = 0; i < n; ++i) {
    float* y = head.y + i * head.value_stride;
    std::fill(y, y + head.values, 0.0f);
    for (size_t j = 0; j < n; ++j) {
      const float* x = head.x + j * head.value_stride;
      for (size_t c = 0; c < head.values; ++c) y[c] += z[i * n + j] * x[c];
    }
  }
}

}  // namespace oxbow
