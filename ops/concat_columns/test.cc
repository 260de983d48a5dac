#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/concat_columns/concat_columns.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

TEST(ConcatColumns, PutsUpToEightInputsSideBySide) {
  for (uint32_t count = 1; count <= 8; ++count) {
    std::vector<TestTensor> inputs;
    uint32_t width = 0;
    for (uint32_t i = 0; i < count; ++i) {
      inputs.push_back(f32_tensor("x", 5, 3 * i + 1));
      fill_uniform(inputs.back(), i);
      width += 3 * i + 1;
    }
    TestTensor y = f32_tensor("y", 5, width);
    OpRunner op(bind_concat_columns);
    for (TestTensor& input : inputs) op.inputs.push_back(&input.with_symbol(0));
    op.outputs = {&y.with_symbol(0)};
    op.symbols = {4};
    ASSERT_EQ(op.bind_and_run(), Status::kOk) << op.message();
    for (size_t row = 0; row < 4; ++row) {
      size_t column = 0;
      for (const TestTensor& input : inputs) {
        for (size_t i = 0; i < input.width; ++i) {
          ASSERT_EQ(y.f32(row)[column++], input.f32(row)[i]);
        }
      }
    }
    EXPECT_TRUE(std::isnan(y.f32(4)[0])) << "untouched";
  }
}

struct Fixture {
  TestTensor a = f32_tensor("a", 5, 4), b = f32_tensor("b", 5, 6), y = f32_tensor("y", 5, 10);
  OpRunner op{bind_concat_columns};
  Fixture() {
    op.inputs = {&a, &b};
    op.outputs = {&y};
    op.symbols = {4};
  }
};

TEST(ConcatColumns, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no inputs", [](Fixture& s) { s.op.inputs.clear(); }, "has 0 inputs"},
      {"nine inputs", [](Fixture& s) { s.op.inputs.assign(9, &s.a); }, "has 9 inputs"},
      {"outputs", [](Fixture& s) { s.op.outputs.push_back(&s.y); }, "2 outputs"},
      {"type", [](Fixture& s) { s.b.type = DataType::kI32; }, "'b' is I32"},
      {"ring", [](Fixture& s) { s.b.ring = 0; }, "in a ring"},
      {"rows", [](Fixture& s) { s.b.rows_symbol = 0; }, "expected equal rows"},
      {"y type", [](Fixture& s) { s.y.type = DataType::kI32; }, "'y' is I32"},
      {"y ring", [](Fixture& s) { s.y.ring = 0; }, "in a ring"},
      {"too wide", [](Fixture& s) { s.y.width = 11; }, "expected a width of 10"},
      {"too narrow", [](Fixture& s) { s.y.width = 9; }, "expected a width of"},
      {"widths that wrap",
       [](Fixture& s) {
         s.a.width = 0xfffffff8u;
         s.b.width = 18;
       },
       "expected a width of 4294967288"},
  });
}

}  // namespace
}  // namespace oxbow
