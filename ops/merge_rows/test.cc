#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "ops/merge_rows/merge_rows.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i32_tensor;
using testing::OpRunner;
using testing::TestTensor;

/// Symbol 0: rows of x. Symbol 1: rows to put in.
struct Fixture {
  TestTensor x = f32_tensor("x", 6, 7), rows = f32_tensor("rows", 6, 7);
  TestTensor y = f32_tensor("y", 6, 7), mask = i32_tensor("mask", 6, 1);
  OpRunner op{bind_merge_rows};
  Fixture() {
    fill_uniform(x, 1);
    fill_uniform(rows, 2);
    x.rows_symbol = mask.rows_symbol = y.rows_symbol = 0;
    rows.rows_symbol = 1;
    op.inputs = {&x, &rows, &mask};
    op.outputs = {&y};
    op.symbols = {5, 2};
    op.symbol_maxima = {6, 6};
  }
};

TEST(MergeRows, PutsRowsWhereAnyMaskMarksThem) {
  for (uint32_t count = 0; count <= 6; ++count) {
    for (uint32_t bits = 0; bits < 64; ++bits) {
      Fixture s;
      uint32_t marked = 0;
      for (uint32_t row = 0; row < 6; ++row) {
        const bool put = (bits >> row & 1) != 0;
        s.mask.i32()[row] = !put ? 0 : row % 2 == 0 ? 1 : -5;
        if (put && row < count) ++marked;
      }
      s.op.symbols = {count, marked};
      ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
      uint32_t next = 0;
      for (uint32_t row = 0; row < count; ++row) {
        const float* expected = (bits >> row & 1) != 0 ? s.rows.f32(next++) : s.x.f32(row);
        for (uint32_t i = 0; i < 7; ++i) ASSERT_EQ(s.y.f32(row)[i], expected[i]);
      }
      if (count < 6) {
        ASSERT_TRUE(std::isnan(s.y.f32(count)[0])) << "untouched";
      }
    }
  }
}

TEST(MergeRows, FailsCleanlyWhenTheMaskMarksAnotherNumberOfRows) {
  for (uint32_t given : {0u, 1u, 3u, 6u}) {
    Fixture s;
    for (uint32_t row = 0; row < 6; ++row) s.mask.i32()[row] = row == 1 || row == 4;
    s.op.symbols = {5, given};
    EXPECT_EQ(s.op.bind_and_run(), Status::kInvalidArgument);
    EXPECT_EQ(std::string(s.op.message()), "the mask 'mask' marks 2 rows, 'rows' has " +
                                               std::to_string(given) + " to put there");
    EXPECT_TRUE(std::isnan(s.y.f32()[0])) << "untouched";
  }
}

TEST(MergeRows, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"inputs", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 2 inputs"},
      {"outputs", [](Fixture& s) { s.op.outputs.clear(); }, "0 outputs"},
      {"x type", [](Fixture& s) { s.x.type = DataType::kI32; }, "'x' is I32"},
      {"x ring", [](Fixture& s) { s.x.ring = 0; }, "in a ring"},
      {"rows type", [](Fixture& s) { s.rows.type = DataType::kI8; }, "'rows' is I8"},
      {"rows ring", [](Fixture& s) { s.rows.ring = 0; }, "in a ring"},
      {"rows width", [](Fixture& s) { s.rows.width = 6; }, "expected a width of 7"},
      {"mask type", [](Fixture& s) { s.mask.type = DataType::kF32; }, "expected I32"},
      {"mask ring", [](Fixture& s) { s.mask.ring = 0; }, "in a ring"},
      {"mask width", [](Fixture& s) { s.mask.width = 2; }, "expected a width of 1"},
      {"mask rows", [](Fixture& s) { s.mask.rows_symbol = 1; }, "expected equal rows"},
      {"y type", [](Fixture& s) { s.y.type = DataType::kI32; }, "'y' is I32"},
      {"y width", [](Fixture& s) { s.y.width = 8; }, "expected a width of 7"},
      {"y rows", [](Fixture& s) { s.y.rows = 5; }, "expected equal rows"},
  });
}

}  // namespace
}  // namespace oxbow
