#include <gtest/gtest.h>

#include "ops/pad_rows/pad_rows.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::i32_tensor;
using testing::OpRunner;
using testing::TestTensor;

/// Symbol 0: rows of x. Symbol 1: of y.
struct Fixture {
  TestTensor x = i32_tensor("x", 11, 1), y = i32_tensor("y", 12, 1);
  schema::PadRowsOptionsT options;
  OpRunner op{bind_pad_rows};
  Fixture() {
    x.rows_symbol = 0;
    y.rows_symbol = 1;
    x.limit = y.limit = 100;
    for (int32_t i = 0; i < 11; ++i) x.i32()[i] = 50 + i;
    options.multiple = 4;
    options.above = 5;
    options.value = 7;
    op.options(options);
    op.inputs = {&x};
    op.outputs = {&y};
    op.symbols = {11, 99};
    op.symbol_maxima = {11, 12};
    op.settable_symbols = {false, true};
  }
  template <typename Change>
  void change(const Change& apply) {
    apply(options);
    op.options(options);
  }
};

TEST(PadRows, FillsUpToTheMultipleAboveTheThresholdOnly) {
  for (uint32_t rows = 0; rows <= 11; ++rows) {
    Fixture s;
    s.op.symbols[0] = rows;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    const uint32_t all = rows <= 5 ? rows : (rows + 3) / 4 * 4;
    ASSERT_EQ(s.op.symbols[1], all);
    for (uint32_t i = 0; i < 12; ++i) {
      const int32_t want = i < rows ? 50 + static_cast<int32_t>(i) : i < all ? 7 : -1;
      ASSERT_EQ(s.y.i32()[i], want) << rows << " rows, row " << i;
    }
  }
}

TEST(PadRows, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no multiple", [](Fixture& s) { s.change([](auto& o) { o.multiple = 0; }); },
       "multiple of 0"},
      {"no room", [](Fixture& s) { s.change([](auto& o) { o.multiple = 13; }); }, "expected 13"},
      {"a symbol that goes not far enough", [](Fixture& s) { s.op.symbol_maxima[1] = 11; },
       "room for 11 rows"},
      {"a value at the limit", [](Fixture& s) { s.change([](auto& o) { o.value = 100; }); },
       "the limit of 'y' is 100"},
      {"a negative value", [](Fixture& s) { s.change([](auto& o) { o.value = -1; }); }, "with -1"},
      {"a lower limit", [](Fixture& s) { s.y.limit = 99; }, "values below 100"},
      {"the symbol of x", [](Fixture& s) { s.op.settable_symbols[1] = false; },
       "symbol of its own"},
  });
}

}  // namespace
}  // namespace oxbow
