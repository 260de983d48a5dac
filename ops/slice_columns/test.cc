#include <gtest/gtest.h>

#include <cmath>

#include "ops/slice_columns/slice_columns.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Fixture {
  TestTensor x = f32_tensor("x", 5, 24), y = f32_tensor("y", 5, 9);
  OpRunner op{bind_slice_columns};
  Fixture() {
    fill_uniform(x, 1);
    op.inputs = {&x};
    op.outputs = {&y};
    op.symbols = {4};
    first(3);
  }
  void first(uint32_t column) {
    schema::SliceColumnsOptionsT options;
    options.first = column;
    op.options(options);
  }
};

TEST(SliceColumns, CopiesTheColumnsOfTheActualRows) {
  for (uint32_t first = 0; first <= 15; ++first) {
    Fixture s;
    s.first(first);
    s.x.rows_symbol = s.y.rows_symbol = 0;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t row = 0; row < 4; ++row) {
      for (size_t i = 0; i < 9; ++i) ASSERT_EQ(s.y.f32(row)[i], s.x.f32(row)[first + i]);
    }
    EXPECT_TRUE(std::isnan(s.y.f32(4)[0])) << "untouched";
  }
}

TEST(SliceColumns, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "no SliceColumnsOptions"},
      {"wrong options", [](Fixture& s) { s.op.options(schema::LinearOptionsT()); },
       "no SliceColumnsOptions"},
      {"inputs", [](Fixture& s) { s.op.inputs.push_back(&s.x); }, "has 2 inputs"},
      {"outputs", [](Fixture& s) { s.op.outputs.clear(); }, "0 outputs"},
      {"x type", [](Fixture& s) { s.x.type = DataType::kI32; }, "'x' is I32"},
      {"x ring", [](Fixture& s) { s.x.ring = 0; }, "in a ring"},
      {"y type", [](Fixture& s) { s.y.type = DataType::kI32; }, "'y' is I32"},
      {"y ring", [](Fixture& s) { s.y.ring = 0; }, "in a ring"},
      {"rows", [](Fixture& s) { s.y.rows_symbol = 0; }, "expected equal rows"},
      {"one column too far", [](Fixture& s) { s.first(16); }, "no 9 columns from 16 on"},
      {"columns that wrap", [](Fixture& s) { s.first(UINT32_MAX - 3); }, "columns from 4294967292"},
      {"wider than x", [](Fixture& s) { s.y.width = 25; }, "no 25 columns"},
  });
}

}  // namespace
}  // namespace oxbow
