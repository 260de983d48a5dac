#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/mix_attention/mix_attention.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Two attentions of 3 heads of 5. Symbol 0: rows.
struct Fixture {
  static constexpr uint32_t kRows = 7, kHeads = 3, kWidth = 5;
  TestTensor x0 = f32_tensor("x0", kRows, kHeads*kWidth), l0 = f32_tensor("l0", kRows, kHeads),
             x1 = f32_tensor("x1", kRows, kHeads*kWidth), l1 = f32_tensor("l1", kRows, kHeads),
             y = f32_tensor("y", kRows, kHeads*kWidth), y8 = i8_tensor("y8", kRows, kHeads*kWidth);
  OpRunner op{bind_mix_attention};
  Fixture() {
    uint64_t seed = 1;
    for (TestTensor* tensor : {&x0, &l0, &x1, &l1}) fill_uniform(*tensor, seed++, -3.0f, 3.0f);
    for (TestTensor* tensor : {&x0, &l0, &x1, &l1, &y, &y8}) tensor->rows_symbol = 0;
    op.inputs = {&x0, &l0, &x1, &l1};
    op.outputs = {&y};
    op.symbols = {kRows - 1};
    op.symbol_maxima = {kRows};
  }
};

TEST(MixAttention, WeighsByTheSoftmaxOfTheLogSums) {
  for (size_t threads : {1u, 3u}) {
    testing::Team team(threads);
    Fixture s;
    s.op.threads = threads;
    s.op.pool = team.pool();
    // Far apart, and one that saw nothing, whose rows may be anything.
    s.l0.f32(1)[0] = -1e5f;
    s.l1.f32(2)[1] = -kInfinity;
    s.x1.f32(2)[5] = NAN;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (uint32_t row = 0; row < 6; ++row) {
      for (uint32_t head = 0; head < 3; ++head) {
        const double a = std::exp(s.l0.value(row, head) - s.l1.value(row, head));
        for (uint32_t d = 5 * head; d < 5 * head + 5; ++d) {
          const double want = std::isinf(a)
                                  ? s.x0.value(row, d)
                                  : (a * s.x0.value(row, d) + s.x1.value(row, d)) / (a + 1);
          ASSERT_NEAR(s.y.value(row, d), want, 4e-6) << row << " " << d;
        }
      }
    }
    EXPECT_TRUE(std::isnan(s.y.f32(6)[0])) << "untouched";
  }
}

TEST(MixAttention, IsZeroWhereNothingWasSeen) {
  Fixture s;
  s.l0.f32(3)[2] = s.l1.f32(3)[2] = -kInfinity;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (uint32_t d = 10; d < 15; ++d) EXPECT_EQ(s.y.f32(3)[d], 0.0f);
}

TEST(MixAttention, MixesEqualPartsExactlyHoweverLowTheyAre) {
  Fixture s;
  s.l0.f32(0)[0] = s.l1.f32(0)[0] = -1e5f;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (uint32_t d = 0; d < 5; ++d) {
    EXPECT_EQ(s.y.f32(0)[d], 0.5f * s.x0.f32(0)[d] + 0.5f * s.x1.f32(0)[d]);
  }
}

TEST(MixAttention, WritesInt8AsTheFloatRowsQuantised) {
  Fixture s;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  s.op.outputs = {&s.y8};
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (uint32_t row = 0; row < 6; ++row) {
    for (uint32_t d = 0; d < 15; ++d) {
      const double half_a_step = 0.5 * double{s.y8.row_scales(row)[0]};
      ASSERT_NEAR(s.y8.value(row, d), s.y.value(row, d), half_a_step * 1.0001);
    }
  }
}

TEST(MixAttention, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"an odd input", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 3 inputs"},
      {"none", [](Fixture& s) { s.op.inputs.clear(); }, "has 0 inputs"},
      {"width", [](Fixture& s) { s.x1.width = 14; }, "'x1'"},
      {"heads", [](Fixture& s) { s.l1.width = 5; }, "'l1'"},
      {"no divisor", [](Fixture& s) { s.l0.width = 4; }, "4 log-sum-exps"},
      {"rows", [](Fixture& s) { s.l1.rows_symbol = -1; }, "l1"},
      {"type", [](Fixture& s) { s.x1.type = DataType::kI32; }, "'x1'"},
      {"output width", [](Fixture& s) { s.y.width = 14; }, "'y'"},
      {"output type", [](Fixture& s) { s.y.type = DataType::kI32; }, "'y'"},
  });
}

}  // namespace
}  // namespace oxbow
