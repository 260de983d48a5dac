#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "ops/fourier/fourier.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Fixture {
  TestTensor x, y;
  OpRunner op{bind_fourier};
  explicit Fixture(uint32_t rows = 6, uint32_t width = 8)
      : x(f32_tensor("x", rows, width)), y(f32_tensor("y", rows, width)) {
    fill_uniform(x, rows * 1000 + width);
    op.inputs = {&x};
    op.outputs = {&y};
  }
};

/// The formula of the header in double.
double formula(const TestTensor& x, size_t rows, size_t t, size_t k) {
  double sum = 0;
  for (size_t s = 0; s < rows; ++s) {
    for (size_t j = 0; j < x.width; ++j) {
      const double turns = static_cast<double>(s * t % rows) / static_cast<double>(rows) +
                           static_cast<double>(j * k % x.width) / x.width;
      sum += x.value(s, j) * std::cos(2 * std::numbers::pi * turns);
    }
  }
  return sum;
}

void expect_formula(const Fixture& s, size_t rows) {
  // Sums of rows * width numbers below 1, each with an error of a few units; errors add up like random steps.
  const double bound = 4e-7 * std::sqrt(static_cast<double>(rows * s.x.width)) *
                       std::log2(static_cast<double>(rows * s.x.width) + 2);
  for (size_t t = 0; t < rows; ++t) {
    for (size_t k = 0; k < s.x.width; ++k) {
      ASSERT_NEAR(s.y.value(t, k), formula(s.x, rows, t, k), bound)
          << rows << " x " << s.x.width << " at " << t << " " << k;
    }
  }
}

TEST(Fourier, FollowsTheFormulaForAnyNumberOfRowsAndColumns) {
  for (const uint32_t rows : {1u, 2u, 3u, 4u, 5u, 16u, 17u, 29u, 36u}) {
    for (const uint32_t width : {1u, 2u, 3u, 4u, 7u, 16u, 30u, 42u}) {
      Fixture s(rows, width);
      ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
      expect_formula(s, rows);
    }
  }
}

TEST(Fourier, RunsOverTheActualRowsOnly) {
  Fixture s(40, 12);
  s.x.with_symbol(0);
  s.y.with_symbol(0);
  s.op.symbols = {33};
  s.op.symbol_maxima = {40};
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  expect_formula(s, 33);
  EXPECT_TRUE(std::isnan(s.y.f32(33)[0])) << "untouched";
  s.op.symbols = {0};
  EXPECT_EQ(s.op.run(), Status::kOk);
}

TEST(Fourier, ThreadsDoNotChangeTheBits) {
  Fixture one(50, 70), three(50, 70);
  const testing::Team team(3);
  three.op.pool = team.pool();
  three.op.threads = 3;
  ASSERT_EQ(one.op.bind_and_run(), Status::kOk) << one.op.message();
  ASSERT_EQ(three.op.bind_and_run(), Status::kOk) << three.op.message();
  EXPECT_TRUE(testing::same_bits(one.y, three.y));
}

TEST(Fourier, NanReachesEveryElement) {
  Fixture s;
  s.x.f32(2)[3] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t t = 0; t < 6; ++t) {
    for (size_t k = 0; k < 8; ++k) EXPECT_TRUE(std::isnan(s.y.f32(t)[k]));
  }
}

TEST(Fourier, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"another width", [](Fixture& s) { s.y.width = 7; }, "'y'"},
      {"other rows", [](Fixture& s) { s.y.rows = 5; }, "'y'"},
  });
}

}  // namespace
}  // namespace oxbow
