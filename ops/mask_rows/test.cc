#include <gtest/gtest.h>

#include <cmath>

#include "ops/mask_rows/mask_rows.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i32_tensor;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Fixture {
  TestTensor x = f32_tensor("x", 6, 7), y = f32_tensor("y", 6, 7);
  TestTensor mask = i32_tensor("mask", 6, 1), q = i8_tensor("q", 6, 7);
  OpRunner op{bind_mask_rows};
  Fixture() {
    fill_uniform(x, 1);
    const int32_t values[] = {1, 0, -1, 0, 7, 1};
    for (size_t i = 0; i < 6; ++i) *mask.i32(i) = values[i];
    op.inputs = {&x, &mask};
    op.outputs = {&y};
    op.symbols = {5};
  }
};

TEST(MaskRows, ClearsTheActualRowsWhoseMaskIsZero) {
  Fixture s;
  for (TestTensor* tensor : {&s.x, &s.mask, &s.y}) tensor->rows_symbol = 0;
  s.x.f32(1)[2] = std::nanf("");
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t row = 0; row < 5; ++row) {
    for (size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(s.y.f32(row)[i], row == 1 || row == 3 ? 0.0f : s.x.f32(row)[i]);
    }
  }
  EXPECT_TRUE(std::isnan(s.y.f32(5)[0])) << "untouched";
}

TEST(MaskRows, WorksInPlace) {
  Fixture s, expected;
  s.op.outputs = {&s.x};
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  ASSERT_EQ(expected.op.bind_and_run(), Status::kOk);
  for (size_t i = 0; i < 42; ++i) EXPECT_EQ(s.x.f32()[i], expected.y.f32()[i]);
}

TEST(MaskRows, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"inputs", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 1 inputs"},
      {"outputs", [](Fixture& s) { s.op.outputs.clear(); }, "0 outputs"},
      {"x type", [](Fixture& s) { s.op.inputs[0] = &s.q; }, "'q' is I8"},
      {"x ring", [](Fixture& s) { s.x.ring = 0; }, "in a ring"},
      {"mask type", [](Fixture& s) { s.op.inputs[1] = &s.y; }, "'y' is F32"},
      {"mask width", [](Fixture& s) { s.mask.width = 2; }, "expected a width of 1"},
      {"mask rows", [](Fixture& s) { s.mask.rows = 5; }, "expected equal rows"},
      {"mask symbol", [](Fixture& s) { s.mask.rows_symbol = 0; }, "expected equal rows"},
      {"mask ring", [](Fixture& s) { s.mask.ring = 0; }, "in a ring"},
      {"y type", [](Fixture& s) { s.op.outputs = {&s.q}; }, "'q' is I8"},
      {"y width", [](Fixture& s) { s.y.width = 8; }, "expected a width of 7"},
      {"y rows", [](Fixture& s) { s.y.rows = 7; }, "expected equal rows"},
      {"y ring", [](Fixture& s) { s.y.ring = 0; }, "in a ring"},
  });
}

}  // namespace
}  // namespace oxbow
