#include "runtime/base/fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

namespace oxbow {
namespace {

TEST(Fft, TransformsEveryLengthInEveryLane) {
  for (size_t n = 1; n <= 66; ++n) {
    std::vector<float> table(fft_table_floats(n)), room(fft_room_floats(n));
    std::vector<float> real(n * kFftLanes), imaginary(n * kFftLanes);
    uint32_t state = 1;
    const auto random = [&] {
      state = state * 1664525u + 1013904223u;
      return static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
    };
    for (float& value : real) value = random();
    for (float& value : imaginary) value = random();
    const std::vector<float> re = real, im = imaginary;
    fft(fft_plan(n, table.data()), real.data(), imaginary.data(), room.data());
    for (size_t lane = 0; lane < kFftLanes; ++lane) {
      for (size_t k = 0; k < n; ++k) {
        std::complex<double> sum = 0;
        for (size_t j = 0; j < n; ++j) {
          const size_t at = j * kFftLanes + lane;
          sum += std::complex<double>(re[at], im[at]) *
                 std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k % n) /
                                     static_cast<double>(n));
        }
        // A sum of n products, each with two roundings and a twiddle's.
        const double bound = 3e-7 * (1 + static_cast<double>(n));
        ASSERT_NEAR(real[k * kFftLanes + lane], sum.real(), bound) << n << " " << k;
        ASSERT_NEAR(imaginary[k * kFftLanes + lane], sum.imag(), bound) << n << " " << k;
      }
    }
  }
}

TEST(Fft, CutsLengthsIntoFoursAndPrimes) {
  std::vector<float> table(2 * 2520);
  const FftPlan plan = fft_plan(2520, table.data());
  const std::vector<uint32_t> factors(plan.factors, plan.factors + plan.count);
  EXPECT_EQ(factors, (std::vector<uint32_t>{4, 2, 3, 3, 5, 7}));
  EXPECT_EQ(fft_plan(1, table.data()).count, 0u);
}

}  // namespace
}  // namespace oxbow
