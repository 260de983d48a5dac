#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/landmark_inverse/landmark_inverse.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

constexpr size_t kHeads = 3, kLandmarks = 5, kKeys = 4, kValues = 2;

struct Fixture {
  TestTensor q = f32_tensor("q", kLandmarks, kHeads* kKeys);
  TestTensor k = f32_tensor("k", kLandmarks, kHeads* kKeys);
  TestTensor x = f32_tensor("x", kLandmarks, kHeads* kValues);
  TestTensor sums = f32_tensor("sums", 1, 2);
  TestTensor y = f32_tensor("y", kLandmarks, kHeads* kValues);
  TestTensor divisor = f32_tensor("divisor", 1, 1);
  schema::LandmarkInverseOptionsT options;
  OpRunner op{bind_landmark_inverse};

  Fixture() {
    fill_uniform(q, 1, -2, 2);
    fill_uniform(k, 2, -2, 2);
    fill_uniform(x, 3);
    fill(sums, {0.5f, 4.0f});
    options.heads = kHeads;
    options.scale = 0.5f;
    options.iterations = 6;
    options.has_sums = true;
    op.options(options);
    sums.with_symbol(0);
    op.symbols = {0};
    op.symbol_maxima = {1};
    op.inputs = {&q, &k, &x, &sums};
    op.outputs = {&y, &divisor};
  }
  template <typename Change>
  void change(const Change& apply) {
    apply(options);
    op.options(options);
  }
};

using Matrix = std::vector<std::vector<double>>;

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), std::vector<double>(b[0].size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) {
      for (size_t n = 0; n < b[0].size(); ++n) c[i][n] += a[i][j] * b[j][n];
    }
  }
  return c;
}

Matrix scores(const Fixture& s, size_t head) {
  Matrix a(kLandmarks, std::vector<double>(kLandmarks));
  for (auto& row : a) {
    const auto i = static_cast<size_t>(&row - a.data());
    double sum = 0;
    for (size_t j = 0; j < kLandmarks; ++j) {
      for (size_t d = 0; d < kKeys; ++d) {
        row[j] += s.q.value(i, head * kKeys + d) * s.k.value(j, head * kKeys + d);
      }
      row[j] = std::exp(row[j] * double{s.options.scale});
      sum += row[j];
    }
    for (double& value : row) value /= sum;
  }
  return a;
}

double largest_sum(const Fixture& s) {
  double largest = 0;
  for (size_t head = 0; head < kHeads; ++head) {
    const Matrix a = scores(s, head);
    for (size_t j = 0; j < kLandmarks; ++j) {
      double sum = 0;
      for (size_t i = 0; i < kLandmarks; ++i) sum += a[i][j];
      largest = std::max(largest, sum);
    }
  }
  return largest;
}

/// The formula of the header in double.
Matrix formula(const Fixture& s, size_t head, double divisor) {
  const Matrix a = scores(s, head);
  Matrix z(kLandmarks, std::vector<double>(kLandmarks));
  for (size_t i = 0; i < kLandmarks; ++i) {
    for (size_t j = 0; j < kLandmarks; ++j) z[i][j] = a[j][i] / divisor;
  }
  const auto from = [](double diagonal, Matrix m) {
    for (size_t i = 0; i < kLandmarks; ++i) {
      for (size_t j = 0; j < kLandmarks; ++j) m[i][j] = (i == j ? diagonal : 0) - m[i][j];
    }
    return m;
  };
  for (uint32_t step = 0; step < s.options.iterations; ++step) {
    const Matrix az = product(a, z);
    z = product(z, from(13, product(az, from(15, product(az, from(7, az))))));
    for (auto& row : z) {
      for (double& value : row) value /= 4;
    }
  }
  Matrix x(kLandmarks, std::vector<double>(kValues));
  for (size_t i = 0; i < kLandmarks; ++i) {
    for (size_t c = 0; c < kValues; ++c) x[i][c] = s.x.value(i, head * kValues + c);
  }
  return product(z, x);
}

void expect_formula(const Fixture& s, double divisor) {
  EXPECT_NEAR(s.divisor.value(0, 0), divisor, 1e-6);
  for (size_t head = 0; head < kHeads; ++head) {
    const Matrix expected = formula(s, head, divisor);
    for (size_t i = 0; i < kLandmarks; ++i) {
      for (size_t c = 0; c < kValues; ++c) {
        // An inverse may be large; what is rounded is the size of its largest element.
        const double bound = 2e-5 * (1 + std::fabs(expected[i][c]));
        ASSERT_NEAR(s.y.value(i, head * kValues + c), expected[i][c], bound)
            << head << " " << i << " " << c;
      }
    }
  }
}

TEST(LandmarkInverse, FollowsTheFormulaWithItsOwnDivisorOrTheOneGiven) {
  for (const uint32_t iterations : {0u, 1u, 6u}) {
    Fixture s;
    s.change([&](auto& o) { o.iterations = iterations; });
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    expect_formula(s, largest_sum(s));
    Fixture given;
    given.op.symbols = {1};
    given.change([&](auto& o) {
      o.iterations = iterations;
      o.column = 1;
    });
    ASSERT_EQ(given.op.bind_and_run(), Status::kOk) << given.op.message();
    expect_formula(given, 4.0);
    // One that is smaller than the own counts for nothing.
    Fixture small;
    small.op.symbols = {1};
    small.change([&](auto& o) { o.iterations = iterations; });
    ASSERT_EQ(small.op.bind_and_run(), Status::kOk) << small.op.message();
    EXPECT_TRUE(testing::same_bits(small.y, s.y));
  }
}

TEST(LandmarkInverse, ThreadsDoNotChangeTheBits) {
  Fixture one, three;
  const testing::Team team(3);
  three.op.pool = team.pool();
  three.op.threads = 3;
  ASSERT_EQ(one.op.bind_and_run(), Status::kOk) << one.op.message();
  ASSERT_EQ(three.op.bind_and_run(), Status::kOk) << three.op.message();
  EXPECT_TRUE(testing::same_bits(one.y, three.y));
}

TEST(LandmarkInverse, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "LandmarkInverseOptions"},
      {"inputs", [](Fixture& s) { s.op.inputs.pop_back(); }, "3 inputs"},
      {"outputs", [](Fixture& s) { s.op.outputs.pop_back(); }, "1 outputs"},
      {"no heads", [](Fixture& s) { s.change([](auto& o) { o.heads = 0; }); }, "0 heads"},
      {"uneven heads", [](Fixture& s) { s.change([](auto& o) { o.heads = 5; }); }, "5 heads"},
      {"rows that are counted", [](Fixture& s) { s.k.with_symbol(0); }, "'k'"},
      {"fewer landmarks", [](Fixture& s) { s.k.rows = 4; }, "expected equal rows"},
      {"keys", [](Fixture& s) { s.k.width = 9; }, "a width of 12"},
      {"output", [](Fixture& s) { s.y.width = 4; }, "a width of 6"},
      {"divisor", [](Fixture& s) { s.divisor.width = 2; }, "a width of 1"},
      {"type", [](Fixture& s) { s.q.type = DataType::kI32; }, "'q'"},
      {"column", [](Fixture& s) { s.change([](auto& o) { o.column = 2; }); }, "column is 2"},
      {"endless", [](Fixture& s) { s.change([](auto& o) { o.iterations = 65; }); }, "at most 64"},
      {"scale", [](Fixture& s) { s.change([](auto& o) { o.scale = INFINITY; }); }, "scale"},
  });
}

}  // namespace
}  // namespace oxbow
