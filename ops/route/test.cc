#include <gtest/gtest.h>

#include <cmath>

#include "ops/route/route.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i32_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Fixture {
  TestTensor scores = f32_tensor("scores", 6, 11), chosen = f32_tensor("chosen", 6, 2);
  TestTensor routes = i32_tensor("routes", 6, 1);
  OpRunner op{bind_route};
  Fixture() {
    fill_uniform(scores, 1, -3.0f, 3.0f);
    scores.rows_symbol = routes.rows_symbol = chosen.rows_symbol = 0;
    routes.limit = 11;
    op.symbols = {5};
    op.symbol_maxima = {6};
    op.settable_symbols = {false};
    op.inputs = {&scores};
    op.outputs = {&routes, &chosen};
  }
};

TEST(Route, TakesTheGreatestScoreAndItsProbability) {
  Fixture s;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t row = 0; row < 5; ++row) {
    size_t best = 0;
    double sum = 0;
    for (size_t e = 0; e < 11; ++e) {
      if (s.scores.value(row, e) > s.scores.value(row, best)) best = e;
      sum += std::exp(s.scores.value(row, e));
    }
    EXPECT_EQ(s.routes.i32()[row], static_cast<int32_t>(best));
    EXPECT_EQ(s.chosen.value(row, 0), static_cast<double>(best));
    // Eleven exponentials good to 2e-7 each, and their sum.
    EXPECT_NEAR(s.chosen.value(row, 1), std::exp(s.scores.value(row, best)) / sum, 1e-6);
  }
  EXPECT_TRUE(std::isnan(s.chosen.value(5, 0))) << "untouched";
}

TEST(Route, OfEqualScoresTheFirstAndNeverANan) {
  Fixture s;
  for (size_t e = 0; e < 11; ++e) {
    s.scores.f32(0)[e] = e == 3 || e == 7 ? 2.0f : 1.0f;
    s.scores.f32(1)[e] = e == 6 ? 0.0f : std::nanf("");
    s.scores.f32(2)[e] = std::nanf("");
  }
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  EXPECT_EQ(s.routes.i32()[0], 3);
  EXPECT_EQ(s.routes.i32()[1], 6);
  EXPECT_EQ(s.routes.i32()[2], 0);
}

TEST(Route, RowsBeyondTheCapacityOfTheirExpertHaveNoProbability) {
  Fixture s;
  // Rows 0, 2 and 4 choose expert 3, the others expert 7.
  for (size_t row = 0; row < 5; ++row) {
    for (size_t e = 0; e < 11; ++e)
      s.scores.f32(row)[e] = e == (row % 2 == 0 ? 3u : 7u) ? 2.0f : 1.0f;
  }
  schema::RouteOptionsT options;
  options.capacity = 2;
  s.op.options(options);
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(run == 0 ? s.op.bind_and_run() : s.op.run(), Status::kOk) << s.op.message();
    for (size_t row = 0; row < 5; ++row) {
      EXPECT_EQ(s.routes.i32()[row], row % 2 == 0 ? 3 : 7);
      EXPECT_EQ(s.chosen.value(row, 1) > 0, row != 4) << "row " << row;
    }
  }
}

TEST(Route, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"outputs", [](Fixture& s) { s.op.outputs.pop_back(); }, "1 outputs"},
      {"scores type", [](Fixture& s) { s.scores.type = DataType::kI32; }, "expected F32"},
      {"routes type", [](Fixture& s) { s.op.outputs[0] = &s.chosen; }, "expected I32"},
      {"routes limit", [](Fixture& s) { s.routes.limit = 10; }, "room for 11 experts"},
      {"routes rows", [](Fixture& s) { s.routes.rows_symbol = -1; }, "expected equal rows"},
      {"chosen width", [](Fixture& s) { s.chosen.width = 1; }, "expected"},
      {"chosen rows", [](Fixture& s) { s.chosen.rows_symbol = -1; }, "expected equal rows"},
  });
}

}  // namespace
}  // namespace oxbow
