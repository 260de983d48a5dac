#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "ops/take_rows/take_rows.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Fixture {
  TestTensor x = f32_tensor("x", 6, 7), y = f32_tensor("y", 4, 7);
  TestTensor x8 = i8_tensor("x8", 6, 20, 2), y8 = i8_tensor("y8", 4, 20, 2);
  OpRunner op{bind_take_rows};
  Fixture() {
    fill_uniform(x, 1);
    fill_uniform(x8, 2);
    x.rows_symbol = x8.rows_symbol = 0;
    y.rows_symbol = y8.rows_symbol = 1;
    op.inputs = {&x};
    op.outputs = {&y};
    op.symbols = {5, 2};
  }
};

TEST(TakeRows, CopiesTheLastRows) {
  for (uint32_t have = 1; have <= 6; ++have) {
    for (uint32_t wanted = 0; wanted <= std::min(have, 4u); ++wanted) {
      Fixture s;
      s.op.symbols = {have, wanted};
      ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
      for (uint32_t row = 0; row < 4; ++row) {
        for (size_t i = 0; i < 7; ++i) {
          if (row < wanted) {
            EXPECT_EQ(s.y.f32(row)[i], s.x.f32(have - wanted + row)[i]);
          } else {
            EXPECT_TRUE(std::isnan(s.y.f32(row)[i])) << "untouched";
          }
        }
      }
    }
  }
}

TEST(TakeRows, CopiesTheFirstRowsWhenToldTo) {
  for (bool from_start : {false, true}) {
    Fixture s;
    schema::TakeRowsOptionsT options;
    options.from_start = from_start;
    s.op.options(options);
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t row = 0; row < 2; ++row) {
      for (size_t i = 0; i < 7; ++i) {
        EXPECT_EQ(s.y.f32(row)[i], s.x.f32(row + (from_start ? 0 : 3))[i]);
      }
    }
    EXPECT_TRUE(std::isnan(s.y.f32(2)[0])) << "untouched";
    s.op.symbols = {1, 2};
    EXPECT_EQ(s.op.run(), Status::kInvalidArgument);
    EXPECT_EQ(std::string(s.op.message()), from_start
                                               ? "the first 2 rows of 'x' are wanted, it has 1"
                                               : "the last 2 rows of 'x' are wanted, it has 1");
  }
}

TEST(TakeRows, WritesToTheCallersMemoryAlsoAFixedNumberOfRows) {
  for (bool fixed : {false, true}) {
    Fixture s;
    if (fixed) s.y.rows_symbol = -1;
    s.op.symbols = {5, 4};
    TestTensor caller = f32_tensor("caller", 4, 7);
    s.op.caller_output = caller.f32();
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t row = 0; row < 4; ++row) {
      for (size_t i = 0; i < 7; ++i) EXPECT_EQ(caller.f32(row)[i], s.x.f32(row + 1)[i]);
    }
    s.op.symbols = {3, 4};
    EXPECT_EQ(s.op.run(), Status::kInvalidArgument) << "four rows of three";
  }
}

TEST(TakeRows, CopiesInt8RowsWithTheirScales) {
  Fixture s;
  s.op.inputs = {&s.x8};
  s.op.outputs = {&s.y8};
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t row = 0; row < 2; ++row) {
    for (size_t i = 0; i < 20; ++i) EXPECT_EQ(s.y8.value(row, i), s.x8.value(row + 3, i));
  }
}

TEST(TakeRows, FailsCleanlyWhenMoreRowsAreWantedThanThereAre) {
  Fixture s;
  s.op.symbols = {1, 2};
  ASSERT_EQ(s.op.bind(), Status::kOk);
  EXPECT_EQ(s.op.run(), Status::kInvalidArgument);
  EXPECT_EQ(std::string(s.op.message()), "the last 2 rows of 'x' are wanted, it has 1");
}

TEST(TakeRows, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"wrong options", [](Fixture& s) { s.op.options(schema::LinearOptionsT()); },
       "no TakeRowsOptions"},
      {"inputs", [](Fixture& s) { s.op.inputs.clear(); }, "has 0 inputs"},
      {"outputs", [](Fixture& s) { s.op.outputs.push_back(&s.y); }, "2 outputs"},
      {"types", [](Fixture& s) { s.op.outputs = {&s.y8}; }, "'y8' is I8"},
      {"x ring", [](Fixture& s) { s.x.ring = 0; }, "in a ring"},
      {"y ring", [](Fixture& s) { s.y.ring = 0; }, "in a ring"},
      {"width", [](Fixture& s) { s.y.width = 8; }, "expected a width of 7"},
      {"groups",
       [](Fixture& s) {
         s.op.inputs = {&s.x8};
         s.op.outputs = {&s.y8};
         s.y8.scale_groups = 1;
       },
       "expected 2 scales"},
  });
}

}  // namespace
}  // namespace oxbow
