#include "runtime/base/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace oxbow {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(ExpF32, StaysWithinTwoTenMillionthsOfTheTrueValue) {
  // A step of 1/4099 is no multiple of the reduction's ln2, so that all of [-ln2/2, ln2/2] is seen.
  double worst = 0;
  for (float x = -87.3f; x < 88.72f; x += 1.0f / 4099.0f) {
    const double expected = std::exp(double{x});
    worst = std::fmax(worst, std::fabs(exp_f32(x) - expected) / expected);
  }
  EXPECT_LT(worst, 2e-7);
}

TEST(ExpF32, NeverDecreases) {
  float last = 0;
  for (float x = -88.0f; x < 89.0f; x += 1.0f / 1024.0f) {
    const float e = exp_f32(x);
    ASSERT_GE(e, last) << "at " << x;
    last = e;
  }
}

TEST(ExpF32, OfZeroIsExactlyOne) {
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-0.0f), 1.0f);
}

TEST(ExpF32, UnderflowsToZeroAndOverflowsToInfinity) {
  for (float x : {-87.4f, -104.0f, -1e9f, -3e38f, -kInf}) EXPECT_EQ(exp_f32(x), 0.0f) << x;
  for (float x : {88.8f, 89.0f, 1e9f, 3e38f, kInf}) EXPECT_EQ(exp_f32(x), kInf) << x;
  EXPECT_TRUE(std::isfinite(exp_f32(88.72f)));
  EXPECT_GE(exp_f32(-87.33f), std::numeric_limits<float>::min());
}

TEST(ExpF32, KeepsNan) { EXPECT_TRUE(std::isnan(exp_f32(kNan))); }

TEST(LogF32, StaysWithinTwoUnitsInTheLastPlace) {
  // Every 97th number from the smallest normal one to the largest, and all of those around 1, where
  // the logarithm is small.
  double worst = 0;
  const auto check = [&](uint32_t bits) {
    const auto x = std::bit_cast<float>(bits);
    const double expected = std::log(double{x});
    const auto rounded = static_cast<float>(expected);
    const double unit = double{std::nextafter(std::fabs(rounded), kInf)} - std::fabs(rounded);
    worst = std::fmax(worst, std::fabs(log_f32(x) - expected) / unit);
  };
  for (uint32_t bits = 0x00800000u; bits < 0x7f800000u; bits += 97) check(bits);
  for (uint32_t bits = 0x3f7f0000u; bits < 0x3f810000u; ++bits) check(bits);
  check(0x00800000u);
  check(0x7f7fffffu);
  EXPECT_LE(worst, 2.0);
}

TEST(LogF32, OfOneIsExactlyZero) { EXPECT_EQ(log_f32(1.0f), 0.0f); }

TEST(LogF32, HasTheUsualEnds) {
  EXPECT_EQ(log_f32(0.0f), -kInf);
  EXPECT_EQ(log_f32(-0.0f), -kInf);
  EXPECT_EQ(log_f32(1e-40f), -kInf) << "subnormals count as 0";
  EXPECT_EQ(log_f32(kInf), kInf);
  for (float x : {-1e-30f, -1.0f, -kInf, kNan, -kNan}) EXPECT_TRUE(std::isnan(log_f32(x))) << x;
}

TEST(SigmoidTanhErf, AreCloseToTheTrueValueEverywhere) {
  double sigmoid = 0, tanh = 0, erf = 0;
  for (float x = -100.0f; x < 100.0f; x += 1.0f / 1021.0f) {
    const double d = x;
    sigmoid = std::fmax(sigmoid, std::fabs(sigmoid_f32(x) - 1.0 / (1.0 + std::exp(-d))));
    tanh = std::fmax(tanh, std::fabs(tanh_f32(x) / std::tanh(d) - 1.0));
    erf = std::fmax(erf, std::fabs(erf_f32(x) - std::erf(d)));
  }
  EXPECT_LT(sigmoid, 2e-7);
  EXPECT_LT(tanh, 2e-7) << "relative";
  EXPECT_LT(erf, 6e-7);
}

TEST(TanhF32, KeepsItsRelativePrecisionNearZeroAndItsSymmetry) {
  for (float x = 1.0f; x > 1e-30f; x *= 0.97f) {
    ASSERT_NEAR(tanh_f32(x) / std::tanh(double{x}), 1.0, 2e-7) << x;
    ASSERT_EQ(tanh_f32(-x), -tanh_f32(x)) << x;
  }
  EXPECT_EQ(tanh_f32(0.0f), 0.0f);
}

TEST(SigmoidTanhErf, ReachTheirLimitsAtInfinity) {
  EXPECT_EQ(sigmoid_f32(-kInf), 0.0f);
  EXPECT_EQ(sigmoid_f32(kInf), 1.0f);
  EXPECT_EQ(tanh_f32(-kInf), -1.0f);
  EXPECT_EQ(tanh_f32(kInf), 1.0f);
  EXPECT_EQ(erf_f32(-kInf), -1.0f);
  EXPECT_EQ(erf_f32(kInf), 1.0f);
  for (float v : {sigmoid_f32(kNan), tanh_f32(kNan), erf_f32(kNan)}) EXPECT_TRUE(std::isnan(v));
}

TEST(SumF32, AddsInTheDocumentedOrder) {
  for (size_t count = 0; count <= 40; ++count) {
    std::vector<float> x(count);
    for (size_t i = 0; i < count; ++i) x[i] = 1.0f / static_cast<float>(3 * i + 1);
    float s[8] = {};
    for (size_t i = 0; i < count; ++i) s[i % 8] += x[i];
    const float expected = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    EXPECT_EQ(sum_f32(count, [&](size_t i) { return x[i]; }), expected) << count;
  }
}

TEST(MaxF32, PassesOverNan) {
  for (size_t count = 1; count <= 20; ++count) {
    for (size_t at = 0; at < count; ++at) {
      std::vector<float> x(count, kNan);
      x[at] = 2.0f;
      EXPECT_EQ(max_f32(count, -kInf, [&](size_t i) { return x[i]; }), 2.0f);
    }
  }
}

}  // namespace
}  // namespace oxbow
