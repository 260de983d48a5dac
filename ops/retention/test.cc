#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/recurrence/recurrence.h"
#include "ops/retention/retention.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Fixture {
  TestTensor q = f32_tensor("q", 9, 8), k = f32_tensor("k", 9, 8), v = f32_tensor("v", 9, 6),
             decay = f32_tensor("decay", 1, 2), y = f32_tensor("y", 9, 6);
  schema::RetentionOptionsT options;
  OpRunner op{bind_retention};
  Fixture() {
    uint64_t seed = 1;
    for (TestTensor* tensor : {&q, &k, &v}) fill_uniform(*tensor, seed++, -2.0f, 2.0f);
    fill_uniform(decay, 9, 0.5f, 0.99f);
    options.heads = 2;
    op.options(options);
    op.inputs = {&q, &k, &v, &decay};
    op.outputs = {&y};
    op.symbols = {8};
  }
  template <typename Change>
  void change(const Change& apply) {
    apply(options);
    op.options(options);
  }
};

/// The formula of the header in double, with what lies before the chunk summed up anew for each token.
double formula(const Fixture& s, size_t t, size_t column, size_t chunk) {
  const size_t h = column / 3, dk = 4, begin = t / chunk * chunk;
  const double w = s.decay.value(0, h);
  const auto score = [&](size_t i, size_t j) {
    double sum = 0;
    for (size_t d = 0; d < dk; ++d) sum += s.q.value(i, h * dk + d) * s.k.value(j, h * dk + d);
    return sum * std::pow(w, static_cast<double>(i - j));
  };
  double n = 0, whole = 0, y = 0, inner = 0, bound = 1;
  for (size_t i = begin; i <= t; ++i) n = n * w + 1;
  for (size_t i = 0; i < chunk; ++i) whole = whole * w + 1;
  for (size_t j = 0; j <= t; ++j) {
    y += score(t, j) / std::sqrt(n) * s.v.value(j, column);
    if (j >= begin) inner += std::fabs(score(t, j)) / std::sqrt(n);
  }
  for (size_t c = 3 * h; begin != 0 && c < 3 * h + 3; ++c) {
    double sum = 0;
    for (size_t d = 0; d < dk; ++d) {
      double state = 0;
      for (size_t j = 0; j < begin; ++j) {
        state += std::pow(w, static_cast<double>(begin - 1 - j)) * s.k.value(j, h * dk + d) *
                 s.v.value(j, c);
      }
      sum += std::fabs(state) / whole;
    }
    bound = std::max(bound, sum);
  }
  return y / std::max(std::clamp(inner, 1.0, double{s.options.limit}), bound);
}

TEST(Retention, FollowsTheFormulaInAnyChunksWithAnyNumberOfThreads) {
  for (const uint32_t chunk : {0u, 1u, 4u, 9u, 20u}) {
    Fixture s, three;
    const testing::Team team(3);
    s.change([&](auto& o) { o.chunk = chunk; });
    three.change([&](auto& o) { o.chunk = chunk; });
    three.op.pool = team.pool();
    three.op.threads = 3;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    ASSERT_EQ(three.op.bind_and_run(), Status::kOk) << three.op.message();
    for (size_t t = 0; t < 9; ++t) {
      for (size_t i = 0; i < 6; ++i) {
        // A few dozen roundings of values up to some ten.
        EXPECT_NEAR(s.y.f32(t)[i], formula(s, t, i, chunk == 0 ? 9 : chunk), 2e-5) << t;
      }
    }
    EXPECT_TRUE(testing::same_bits(s.y, three.y));
  }
}

TEST(Retention, DiffersFromTheRecurrenceOfAWholeTextByTheDivisorOnly) {
  Fixture s;
  s.change([](auto& o) { o.limit = 1; });
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  TestTensor state = f32_tensor("state", 8, 3), norm = f32_tensor("norm", 1, 2),
             y = f32_tensor("y", 9, 6);
  fill(state, std::vector<float>(24));
  fill(norm, {0, 0});
  OpRunner recurrence(bind_recurrence);
  schema::RecurrenceOptionsT rule;
  rule.heads = rule.key_heads = 2;
  rule.has_decay = true;
  rule.normaliser = schema::Normaliser::Decays;
  recurrence.options(rule);
  recurrence.inputs = {&s.q, &s.k, &s.v, &state, &s.decay, &norm};
  recurrence.outputs = {&y, &state, &norm};
  ASSERT_EQ(recurrence.bind_and_run(), Status::kOk) << recurrence.message();
  for (size_t i = 0; i < 54; ++i) EXPECT_NEAR(s.y.f32()[i], y.f32()[i], 1e-5) << i;
}

TEST(Retention, RunsOverTheActualRowsOnly) {
  Fixture s;
  for (TestTensor* tensor : {&s.q, &s.k, &s.v, &s.y}) tensor->rows_symbol = 0;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  EXPECT_NEAR(s.y.f32(7)[0], formula(s, 7, 0, 9), 2e-5);
  EXPECT_TRUE(std::isnan(s.y.f32(8)[0])) << "untouched";
}

TEST(Retention, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "no RetentionOptions"},
      {"inputs", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 3 inputs"},
      {"no heads", [](Fixture& s) { s.change([](auto& o) { o.heads = 0; }); }, "0 heads"},
      {"heads", [](Fixture& s) { s.change([](auto& o) { o.heads = 4; }); }, "4 heads"},
      {"limit", [](Fixture& s) { s.change([](auto& o) { o.limit = 0.5f; }); }, "limit is 0.5"},
      {"limit inf", [](Fixture& s) { s.change([](auto& o) { o.limit = HUGE_VALF; }); }, "limit is"},
      {"q type", [](Fixture& s) { s.q.type = DataType::kI8; }, "'q' is I8"},
      {"k width", [](Fixture& s) { s.k.width = 6; }, "expected a width of 8"},
      {"v rows", [](Fixture& s) { s.v.rows = 8; }, "expected equal rows"},
      {"y width", [](Fixture& s) { s.y.width = 4; }, "expected a width of 6"},
      {"decay width", [](Fixture& s) { s.decay.width = 1; }, "expected a width of 2"},
  });
}

}  // namespace
}  // namespace oxbow
