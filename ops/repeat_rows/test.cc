#include <gtest/gtest.h>

#include <cmath>

#include "ops/repeat_rows/repeat_rows.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i32_tensor;
using testing::OpRunner;
using testing::TestTensor;

/// Symbols: rows of x, of y, of the shape.
struct Fixture {
  TestTensor x = f32_tensor("x", 5, 3), y = f32_tensor("y", 13, 3);
  TestTensor shape = i32_tensor("shape", 3, 1);
  OpRunner op{bind_repeat_rows};
  Fixture() {
    fill_uniform(x, 1);
    x.rows_symbol = 0;
    y.rows_symbol = 1;
    shape.rows_symbol = 2;
    op.symbols = {5, 11, 3};
    op.symbol_maxima = {5, 13, 3};
    op.settable_symbols = {true, false, false};
    op.inputs = {&x};
    op.outputs = {&y};
    options(3, 0);
  }
  void options(uint32_t group, int32_t offset, bool has_shape = false, uint32_t length = 0) {
    schema::RepeatRowsOptionsT o;
    o.group = group;
    o.offset = offset;
    o.has_shape = has_shape;
    o.length = length;
    op.options(o);
  }
  void with_shape(int32_t first) {
    options(1, 2, true, 4);
    op.inputs.push_back(&shape);
    op.settable_symbols[1] = true;
    for (int i = 0; i < 3; ++i) shape.i32()[i] = first;
  }
};

TEST(RepeatRows, RepeatsAndMovesRowsAndFillsWithZeros) {
  for (uint32_t group : {1u, 2u, 3u, 100u}) {
    for (int32_t offset : {0, 1, 4, 40, -1, -6, INT32_MIN, INT32_MAX}) {
      for (uint32_t rows = 0; rows <= 5; ++rows) {
        Fixture s;
        s.op.symbols[0] = rows;
        s.options(group, offset);
        ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
        for (int64_t t = 0; t < 11; ++t) {
          const int64_t at = t + offset;
          const bool there = at >= 0 && at / group < rows;
          for (uint32_t i = 0; i < 3; ++i) {
            const double expected = there ? s.x.value(static_cast<size_t>(at / group), i) : 0.0;
            ASSERT_EQ(s.y.value(static_cast<size_t>(t), i), expected) << t << " " << offset;
          }
        }
        EXPECT_TRUE(std::isnan(s.y.value(11, 0))) << "untouched";
      }
    }
  }
}

TEST(RepeatRows, CountsItsRowsByAShape) {
  Fixture s;
  s.with_shape(3);
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  EXPECT_EQ(s.op.symbols[1], 12u);
  EXPECT_EQ(s.y.value(0, 1), s.x.value(2, 1));
  EXPECT_EQ(s.y.value(3, 1), 0.0);
  Fixture none;
  none.with_shape(3);
  none.op.symbols[2] = 0;
  ASSERT_EQ(none.op.bind_and_run(), Status::kOk) << "without a shape there are no rows";
  EXPECT_EQ(none.op.symbols[1], 0u);
  for (const int32_t wrong : {4, -1, INT32_MAX, INT32_MIN}) {
    Fixture bad;
    bad.with_shape(wrong);
    EXPECT_EQ(bad.op.bind(), Status::kOk);
    EXPECT_EQ(bad.op.run(), Status::kInvalidArgument) << wrong;
  }
}

TEST(RepeatRows, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"group", [](Fixture& s) { s.options(0, 0); }, "group is 0"},
      {"length", [](Fixture& s) { s.options(1, 0, false, 3); }, "length without a shape"},
      {"no length",
       [](Fixture& s) {
         s.with_shape(1);
         s.options(1, 0, true, 0);
       },
       "shape without a length"},
      {"shape", [](Fixture& s) { s.options(1, 0, true, 3); }, "has 1 inputs"},
      {"a symbol of the caller",
       [](Fixture& s) {
         s.with_shape(1);
         s.op.settable_symbols[1] = false;
       },
       "symbol of its own"},
      {"room", [](Fixture& s) { s.y.rows = 3; }, "room for 3"},
  });
}

}  // namespace
}  // namespace oxbow
