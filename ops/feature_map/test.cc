#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/feature_map/feature_map.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

std::vector<double> formula(const std::vector<double>& x, size_t order, double epsilon) {
  std::vector<double> r, f;
  for (const double value : x) r.push_back(std::max(value, 0.0));
  for (const double value : x) r.push_back(std::max(-value, 0.0));
  for (size_t i = 1; i <= order; ++i) {
    std::vector<double> rolled = r;
    std::rotate(rolled.begin(), rolled.end() - static_cast<ptrdiff_t>(i % r.size()), rolled.end());
    for (size_t j = 0; j < r.size(); ++j) f.push_back(r[j] * rolled[j]);
  }
  double sum = epsilon;
  for (const double value : f) sum += value;
  for (double& value : f) value /= sum;
  return f;
}

struct Fixture {
  TestTensor x = f32_tensor("x", 5, 12), y = f32_tensor("y", 5, 72);
  OpRunner op{bind_feature_map};
  schema::FeatureMapOptionsT options;
  Fixture() {
    fill_uniform(x, 1);
    op.inputs = {&x};
    op.outputs = {&y};
    op.symbols = {4};
    options.heads = 2;
    options.order = 3;
    op.options(options);
  }
  template <typename Change>
  void change(const Change& apply) {
    apply(options);
    op.options(options);
  }
};

TEST(FeatureMap, FollowsTheFormulaOverTheActualRowsOnly) {
  Fixture s;
  s.x.rows_symbol = s.y.rows_symbol = 0;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t row = 0; row < 4; ++row) {
    for (size_t h = 0; h < 2; ++h) {
      std::vector<double> x;
      for (size_t i = 0; i < 6; ++i) x.push_back(s.x.value(row, 6 * h + i));
      const std::vector<double> expected = formula(x, 3, 1e-6);
      for (size_t i = 0; i < 36; ++i) {
        EXPECT_NEAR(s.y.f32(row)[36 * h + i], expected[i], 1e-6) << i;
      }
    }
  }
  EXPECT_TRUE(std::isnan(s.y.f32(4)[0])) << "untouched";
}

TEST(FeatureMap, OfZerosIsZerosAndNanSpoilsItsOwnHead) {
  Fixture s;
  for (size_t i = 0; i < 12; ++i) s.x.f32(0)[i] = 0;
  s.x.f32(1)[0] = std::nanf("");
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  for (size_t i = 0; i < 72; ++i) EXPECT_EQ(s.y.f32(0)[i], 0.0f);
  EXPECT_TRUE(std::isnan(s.y.f32(1)[0]));
  EXPECT_FALSE(std::isnan(s.y.f32(1)[36]));
}

TEST(FeatureMap, ShiftsLongerThanAHeadWrap) {
  Fixture s;
  TestTensor x = f32_tensor("x", 1, 1), y = f32_tensor("y", 1, 6);
  x.f32()[0] = 2;
  feature_map_f32_f32_ref(x.f32(), 1, 3, 1e-6f, y.f32());
  const std::vector<double> expected = formula({2}, 3, 1e-6);
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(y.f32()[i], expected[i], 1e-6);
}

TEST(FeatureMap, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "no FeatureMapOptions"},
      {"inputs", [](Fixture& s) { s.op.inputs.clear(); }, "has 0 inputs"},
      {"epsilon", [](Fixture& s) { s.change([](auto& o) { o.epsilon = 0; }); }, "epsilon is 0"},
      {"heads", [](Fixture& s) { s.change([](auto& o) { o.heads = 0; }); }, "0 heads"},
      {"heads 5", [](Fixture& s) { s.change([](auto& o) { o.heads = 5; }); }, "5 heads"},
      {"order", [](Fixture& s) { s.change([](auto& o) { o.order = 0; }); }, "do not fit"},
      {"order 2", [](Fixture& s) { s.change([](auto& o) { o.order = 2; }); }, "do not fit"},
      {"x type", [](Fixture& s) { s.x.type = DataType::kI8; }, "'x' is I8"},
      {"y ring", [](Fixture& s) { s.y.ring = 0; }, "in a ring"},
      {"rows", [](Fixture& s) { s.y.rows = 4; }, "expected equal rows"},
  });
}

}  // namespace
}  // namespace oxbow
