#include <gtest/gtest.h>

#include <cmath>

#include "ops/select_rows/select_rows.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i32_tensor;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

/// Symbol 0: rows of x. Symbol 1: selected rows.
struct Fixture {
  TestTensor x = f32_tensor("x", 6, 7), y = f32_tensor("y", 6, 7);
  TestTensor x8 = i8_tensor("x8", 6, 20, 2), y8 = i8_tensor("y8", 6, 20, 2);
  TestTensor mask = i32_tensor("mask", 6, 1);
  OpRunner op{bind_select_rows};
  Fixture() {
    fill_uniform(x, 1);
    fill_uniform(x8, 2);
    x.rows_symbol = x8.rows_symbol = mask.rows_symbol = 0;
    y.rows_symbol = y8.rows_symbol = 1;
    op.inputs = {&x, &mask};
    op.outputs = {&y};
    op.symbols = {5, 99};
    op.symbol_maxima = {6, 6};
    op.settable_symbols = {false, true};
  }
  void use_i8() {
    op.inputs[0] = &x8;
    op.outputs[0] = &y8;
  }
};

TEST(SelectRows, CopiesTheRowsOfAnyMask) {
  for (bool i8 : {false, true}) {
    for (uint32_t rows = 0; rows <= 6; ++rows) {
      for (uint32_t bits = 0; bits < 64; ++bits) {
        Fixture s;
        if (i8) s.use_i8();
        s.op.symbols[0] = rows;
        // Any number but 0 selects, and what lies behind the actual rows does not count.
        for (uint32_t row = 0; row < 6; ++row) {
          s.mask.i32()[row] = (bits >> row & 1) == 0 ? 0 : row % 2 == 0 ? 1 : -5;
        }
        ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
        const TestTensor& x = *s.op.inputs[0];
        const TestTensor& y = *s.op.outputs[0];
        uint32_t selected = 0;
        for (uint32_t row = 0; row < rows; ++row) {
          if ((bits >> row & 1) == 0) continue;
          for (uint32_t i = 0; i < x.width; ++i) ASSERT_EQ(y.value(selected, i), x.value(row, i));
          ++selected;
        }
        ASSERT_EQ(s.op.symbols[1], selected);
        if (selected < 6) {
          ASSERT_TRUE(std::isnan(y.value(selected, 0)) || i8) << "untouched";
        }
      }
    }
  }
}

TEST(SelectRows, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"inputs", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 1 inputs"},
      {"outputs", [](Fixture& s) { s.op.outputs.push_back(&s.y); }, "2 outputs"},
      {"x type", [](Fixture& s) { s.x.type = DataType::kI32; }, "expected F32 or I8"},
      {"x ring", [](Fixture& s) { s.x.ring = 0; }, "in a ring"},
      {"mask type", [](Fixture& s) { s.mask.type = DataType::kF32; }, "expected I32"},
      {"mask ring", [](Fixture& s) { s.mask.ring = 0; }, "in a ring"},
      {"mask width", [](Fixture& s) { s.mask.width = 2; }, "expected a width of 1"},
      {"mask rows", [](Fixture& s) { s.mask.rows = 5; }, "expected equal rows"},
      {"mask symbol", [](Fixture& s) { s.mask.rows_symbol = -1; }, "expected equal rows"},
      {"y type", [](Fixture& s) { s.op.outputs = {&s.y8}; }, "expected F32"},
      {"y ring", [](Fixture& s) { s.y.ring = 0; }, "in a ring"},
      {"y width", [](Fixture& s) { s.y.width = 8; }, "expected a width of 7"},
      {"y scales",
       [](Fixture& s) {
         s.use_i8();
         s.y8.scale_groups = 4;
       },
       "expected 2 scales"},
      {"no symbol", [](Fixture& s) { s.y.rows_symbol = -1; }, "symbol of its own"},
      {"the symbol of x",
       [](Fixture& s) {
         s.y.rows_symbol = 0;
         s.op.settable_symbols[0] = true;
       },
       "symbol of its own"},
      {"a symbol of the caller", [](Fixture& s) { s.op.settable_symbols[1] = false; },
       "symbol of its own"},
      {"a symbol that goes not far enough", [](Fixture& s) { s.op.symbol_maxima[1] = 5; },
       "room for 5 rows"},
      {"too little room", [](Fixture& s) { s.y.rows = 5; }, "room for 5"},
  });
}

}  // namespace
}  // namespace oxbow
