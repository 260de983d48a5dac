#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/rope_angles/rope_angles.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Fixture {
  TestTensor frequencies = f32_tensor("frequencies", 1, 5), y = f32_tensor("y", 6, 10);
  TestTensor q = i8_tensor("q", 6, 10);
  OpRunner op{bind_rope_angles};
  Fixture() {
    fill(frequencies, {1.0f, 0.3f, 0.01f, 1e-4f, 0.0f});
    y.rows_symbol = 0;
    op.inputs = {&frequencies};
    op.outputs = {&y};
    op.symbols = {5};
    op.symbol_maxima = {6};
    op.settable_symbols = {false, true};
    last(0);
  }
  void last(uint32_t value) {
    schema::RopeAnglesOptionsT options;
    options.last = value;
    op.options(options);
  }
  void expect_row(size_t row, uint64_t position) const {
    for (size_t i = 0; i < 5; ++i) {
      // Exact up to 2^29, as 24 and 29 bits fit into a double.
      const double angle = static_cast<double>(position) * double{frequencies.f32()[i]};
      EXPECT_NEAR(y.f32(row)[i], std::sin(angle), 0x1p-24) << row << ", " << i;
      EXPECT_NEAR(y.f32(row)[5 + i], std::cos(angle), 0x1p-24) << row << ", " << i;
    }
  }
};

TEST(RopeAngles, AreThoseOfThePositionsInTheStream) {
  for (uint64_t position : {0, 1, 1000, 1 << 28}) {
    Fixture s;
    s.op.position = position;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t row = 0; row < 5; ++row) s.expect_row(row, position + row);
    EXPECT_TRUE(std::isnan(s.y.f32(5)[0])) << "untouched";
  }
}

TEST(RopeAngles, StopAtTheLastPosition) {
  Fixture s;
  s.op.position = 8;
  s.last(10);
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t row = 0; row < 5; ++row) s.expect_row(row, row < 2 ? 8 + row : 10);
}

TEST(RopeAngles, StillDifferFarBeyondTheLastBitOfADouble) {
  Fixture s;
  s.op.position = uint64_t{1} << 60;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  // One position further turns by f: sin(a + f) = sin a cos f + cos a sin f.
  for (size_t row = 1; row < 5; ++row) {
    for (size_t i = 0; i < 5; ++i) {
      const double f = s.frequencies.f32()[i];
      const double expected =
          s.y.value(row - 1, i) * std::cos(f) + s.y.value(row - 1, 5 + i) * std::sin(f);
      EXPECT_NEAR(s.y.value(row, i), expected, 3 * 0x1p-25);
    }
  }
}

TEST(RopeAngles, GiveTheSameBitsWithAnyNumberOfThreads) {
  Fixture one, three;
  ASSERT_EQ(one.op.bind_and_run(), Status::kOk);
  const testing::Team team(3);
  three.op.threads = 3;
  three.op.pool = team.pool();
  three.op.reference_only = false;
  ASSERT_EQ(three.op.bind_and_run(), Status::kOk);
  EXPECT_TRUE(testing::same_bits(one.y, three.y));
}

TEST(RopeAngles, OfFrequenciesThatAreNotFiniteAreNan) {
  Fixture s;
  s.frequencies.f32()[1] = std::numeric_limits<float>::infinity();
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  EXPECT_TRUE(std::isnan(s.y.f32()[1]) && std::isnan(s.y.f32()[6]));
  EXPECT_EQ(s.y.f32()[0], 0.0f);
}

TEST(RopeAngles, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "no RopeAnglesOptions"},
      {"wrong options", [](Fixture& s) { s.op.options(schema::PoolOptionsT()); },
       "no RopeAnglesOptions"},
      {"inputs", [](Fixture& s) { s.op.inputs.clear(); }, "has 0 inputs"},
      {"outputs", [](Fixture& s) { s.op.outputs.push_back(&s.y); }, "2 outputs"},
      {"frequency rows", [](Fixture& s) { s.op.inputs = {&s.y}; }, "exactly one row"},
      {"frequency symbol", [](Fixture& s) { s.frequencies.rows_symbol = 0; }, "exactly one row"},
      {"frequency type", [](Fixture& s) { s.op.inputs = {&s.q}; }, "'q' is I8"},
      {"frequency ring", [](Fixture& s) { s.frequencies.ring = 0; }, "in a ring"},
      {"y type", [](Fixture& s) { s.op.outputs = {&s.q}; }, "'q' is I8"},
      {"y ring", [](Fixture& s) { s.y.ring = 0; }, "in a ring"},
      {"y width", [](Fixture& s) { s.y.width = 9; }, "expected a width of 10"},
      {"y symbol", [](Fixture& s) { s.y.rows_symbol = 1; }, "expected those of the tokens"},
  });
}

}  // namespace
}  // namespace oxbow
