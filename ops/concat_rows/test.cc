#include <gtest/gtest.h>

#include <limits>

#include "ops/concat_rows/concat_rows.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Fixture {
  TestTensor a = f32_tensor("a", 1, 5), b = f32_tensor("b", 3, 5), c = f32_tensor("c", 2, 5);
  TestTensor y = f32_tensor("y", 6, 5);
  OpRunner op{bind_concat_rows};
  Fixture() {
    fill_uniform(a, 1);
    fill_uniform(b, 2);
    fill_uniform(c, 3);
    op.inputs = {&a, &b, &c};
    op.outputs = {&y};
  }
};

TEST(ConcatRows, PutsRowsOneAfterTheOtherAsTheyAre) {
  Fixture s;
  s.b.f32(1)[2] = std::numeric_limits<float>::infinity();
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  size_t row = 0;
  for (const TestTensor* part : {&s.a, &s.b, &s.c}) {
    for (size_t i = 0; i < part->rows; ++i, ++row) {
      for (size_t column = 0; column < 5; ++column) {
        EXPECT_EQ(s.y.f32(row)[column], part->f32(i)[column]);
      }
    }
  }
}

TEST(ConcatRows, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"one row less", [](Fixture& s) { s.y.rows = 5; }, "expected 6 rows"},
      {"one row more", [](Fixture& s) { s.c.rows = 1; }, "expected 5 rows"},
      {"another width", [](Fixture& s) { s.b.width = 4; }, "'b'"},
      {"rows that are counted", [](Fixture& s) { s.b.with_symbol(0); }, "'b'"},
  });
}

}  // namespace
}  // namespace oxbow
