#include <algorithm>

#include "ops/fourier/fourier.h"

namespace oxbow {

void fourier_rows_f32_f32_ref(const FftPlan& plan, const float* x, size_t count, float* y,
                              float* room) {
  const size_t n = plan.n;
  float* real = room;
  float* imaginary = real + n * kFftLanes;
  std::fill(real, real + 2 * n * kFftLanes, 0.0f);
  for (size_t row = 0; row < count; ++row) {
    float* part = (row % 2 == 0 ? real : imaginary) + row / 2;
    for (size_t j = 0; j < n; ++j) part[j * kFftLanes] = x[row * n + j];
  }
  fft(plan, real, imaginary, imaginary + n * kFftLanes);
  for (size_t row = 0; row < count; ++row) {
    // Of a + i b the transform at k and at n - k tells both.
    const float* own = (row % 2 == 0 ? real : imaginary) + row / 2;
    const float* other = (row % 2 == 0 ? imaginary : real) + row / 2;
    const float sign = row % 2 == 0 ? 0.5f : -0.5f;
    float* to = y + row * n;
    to[0] = own[0];
    for (size_t k = 1; 2 * k <= n; ++k) {
      const size_t at = k * kFftLanes, mirror = (n - k) * kFftLanes;
      const float re = 0.5f * (own[at] + own[mirror]);
      if (2 * k != n) to[n - k] = sign * (other[at] - other[mirror]);
      to[k] = re;
    }
  }
}

void fourier_columns_f32_ref(const FftPlan& plan, size_t width, size_t first, size_t count,
                             float* y, float* room) {
  const size_t n = plan.n;
  float* real = room;
  float* imaginary = real + n * kFftLanes;
  std::fill(real, real + 2 * n * kFftLanes, 0.0f);
  const auto partner = [&](size_t k) { return k != 0 ? width - k : width / 2; };
  // A column of an odd width has no partner, which is then itself.
  const auto is_alone = [&](size_t k) { return k == 0 && width % 2 != 0; };
  for (size_t t = 0; t < n; ++t) {
    const float* row = y + t * width;
    for (size_t lane = 0; lane < count; ++lane) {
      const size_t k = first + lane;
      real[t * kFftLanes + lane] = row[k];
      if (!is_alone(k)) imaginary[t * kFftLanes + lane] = row[partner(k)];
    }
  }
  fft(plan, real, imaginary, imaginary + n * kFftLanes);
  for (size_t t = 0; t < n; ++t) {
    float* row = y + t * width;
    const size_t at = t * kFftLanes, mirror = (t == 0 ? 0 : n - t) * kFftLanes;
    for (size_t lane = 0; lane < count; ++lane) {
      const size_t k = first + lane;
      if (k == 0) {
        // Two columns of real numbers.
        row[0] = 0.5f * (real[at + lane] + real[mirror + lane]);
        if (!is_alone(k)) {
          row[width / 2] = 0.5f * (imaginary[at + lane] + imaginary[mirror + lane]);
        }
      } else {
        // Frequency W - k is the conjugate, and its transform that of k backwards.
        row[k] = real[at + lane];
        row[width - k] = real[mirror + lane];
      }
    }
  }
}

}  // namespace oxbow
