#include <gtest/gtest.h>

#include <cmath>

#include "ops/lerp/lerp.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Fixture {
  TestTensor a = f32_tensor("a", 5, 9), b = f32_tensor("b", 5, 9), y = f32_tensor("y", 5, 9);
  TestTensor mix = f32_tensor("mix", 5, 9), one = f32_tensor("one", 1, 9);
  OpRunner op{bind_lerp};
  Fixture() {
    fill_uniform(a, 1);
    fill_uniform(b, 2);
    fill_uniform(mix, 3, 0, 1);
    fill_uniform(one, 4, 0, 1);
    op.inputs = {&a, &b, &mix};
    op.outputs = {&y};
    op.symbols = {4};
  }
};

TEST(Lerp, GoesFromOneToTheOtherByEachRowsMixOrByOneForAll) {
  for (const bool shared : {false, true}) {
    Fixture s;
    if (shared) s.op.inputs[2] = &s.one;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t row = 0; row < 5; ++row) {
      for (size_t i = 0; i < 9; ++i) {
        const double mix = shared ? s.one.value(0, i) : s.mix.value(row, i);
        const double a = s.a.value(row, i);
        // Three roundings of numbers up to 2.
        EXPECT_NEAR(s.y.f32(row)[i], a + (s.b.value(row, i) - a) * mix, 4e-7);
      }
    }
  }
}

TEST(Lerp, RunsOverTheActualRowsOnly) {
  Fixture s;
  for (TestTensor* tensor : {&s.a, &s.b, &s.mix, &s.y}) tensor->rows_symbol = 0;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  EXPECT_FALSE(std::isnan(s.y.f32(3)[8]));
  EXPECT_TRUE(std::isnan(s.y.f32(4)[0])) << "untouched";
}

TEST(Lerp, NanSpoilsItsOwnElementOnly) {
  Fixture s;
  s.mix.f32(1)[2] = std::nanf("");
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  EXPECT_TRUE(std::isnan(s.y.f32(1)[2]));
  EXPECT_FALSE(std::isnan(s.y.f32(1)[3]));
}

TEST(Lerp, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"inputs", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 2 inputs"},
      {"ring", [](Fixture& s) { s.b.ring = 1; }, "in a ring"},
      {"type", [](Fixture& s) { s.mix.type = DataType::kI32; }, "'mix' is I32"},
      {"width", [](Fixture& s) { s.mix.width = 8; }, "expected a width of 9"},
      {"mix rows", [](Fixture& s) { s.mix.rows = 4; }, "expected equal rows"},
      {"b rows", [](Fixture& s) { s.b.rows_symbol = 0; }, "expected equal rows"},
      {"y rows", [](Fixture& s) { s.y.rows = 4; }, "expected equal rows"},
  });
}

}  // namespace
}  // namespace oxbow
