#include "runtime/base/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace oxbow {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(QuantizeValue, RoundsTiesToEven) {
  const float from[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f, 0.49999997f};
  const int to[] = {0, 2, 2, 0, -2, -2, 126, 0};
  for (size_t i = 0; i < std::size(from); ++i) EXPECT_EQ(quantize_value(from[i], 1.0f), to[i]);
}

TEST(QuantizeValue, SaturatesWhateverComes) {
  for (float x : {127.4f, 128.0f, 1e9f, 3e38f, kInf}) {
    EXPECT_EQ(quantize_value(x, 1.0f), 127);
    EXPECT_EQ(quantize_value(-x, 1.0f), -127);
  }
  EXPECT_EQ(quantize_value(kNan, 1.0f), 0);
  EXPECT_EQ(quantize_value(-kNan, 1.0f), 0);
}

TEST(QuantizeRow, GivesEachGroupItsOwnScaleAndZeroPadding) {
  const std::vector<float> x = {1, -2, 0.5f, 100, 50, -25};
  std::vector<int8_t> q(16, 99);
  float scales[2] = {};
  quantize_row(x.data(), 6, 2, q.data(), scales);
  EXPECT_EQ(scales[0], 2.0f / 127.0f);
  EXPECT_EQ(scales[1], 100.0f / 127.0f);
  EXPECT_EQ(q, (std::vector<int8_t>{64, -127, 32, 127, 64, -32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(QuantizeGroup, IsWithinHalfAStepOfTheValue) {
  std::vector<float> x(101);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i) * 1.7f) * 3.0f;
  std::vector<int8_t> q(x.size());
  float scale = 0;
  quantize_group(x.data(), x.size(), q.data(), &scale);
  // Half a step, and a few roundings of the product around 127.
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(q[i] * scale, x[i], scale * (0.5f + 1e-4f));
}

TEST(QuantizeGroup, OfZerosOrNextToZeroIsZeroWithScaleZero) {
  for (float value : {0.0f, -0.0f, 1e-40f, 0x1p-101f}) {
    const float x[] = {value, -value, 0};
    int8_t q[3] = {9, 9, 9};
    float scale = 9;
    quantize_group(x, 3, q, &scale);
    EXPECT_EQ(scale, 0.0f);
    for (int code : q) EXPECT_EQ(code, 0);
  }
}

TEST(QuantizeGroup, OfNanAndInfinityStaysFinite) {
  const float x[] = {kNan, 1, -kInf, kInf, -kNan};
  int8_t q[5];
  float scale = 0;
  quantize_group(x, 5, q, &scale);
  EXPECT_EQ(scale, std::numeric_limits<float>::max() / 127.0f);
  const int expected[] = {0, 0, -127, 127, 0};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(q[i], expected[i]) << i;

  const float nans[] = {kNan, kNan};
  quantize_group(nans, 2, q, &scale);
  EXPECT_EQ(scale, 0.0f);
  EXPECT_EQ(q[0], 0);
}

}  // namespace
}  // namespace oxbow
