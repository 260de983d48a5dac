#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/pool/pool.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

TEST(Pool, FollowsTheFormula) {
  for (uint32_t group : {1u, 2u, 3u, 4u, 7u}) {
    for (uint32_t width : testing::simd_sizes_up_to(66)) {
      TestTensor x = f32_tensor("x", 1, group * width);
      TestTensor mean = f32_tensor("mean", 1, width), max = f32_tensor("max", 1, width);
      fill_uniform(x, width * 8 + group);
      pool_mean_f32_f32_ref(x.f32(), group, width, mean.f32());
      pool_max_f32_f32_ref(x.f32(), group, width, max.f32());
      for (uint32_t i = 0; i < width; ++i) {
        double sum = 0, largest = -2;
        for (uint32_t g = 0; g < group; ++g) {
          sum += x.value(0, g * width + i);
          largest = std::max(largest, x.value(0, g * width + i));
        }
        // One rounding for each of group terms of at most 1, relative to a sum of at most group.
        ASSERT_NEAR(mean.f32()[i], sum / group, group * 0x1p-24);
        ASSERT_EQ(max.f32()[i], largest);
      }
    }
  }
}

TEST(Pool, OfNeighboursIsThePoolOfTheTransposed) {
  TestTensor x = f32_tensor("x", 1, 12), mean = f32_tensor("mean", 1, 4),
             max = f32_tensor("max", 1, 4);
  fill_uniform(x, 1);
  pool_mean_neighbours_f32_f32_ref(x.f32(), 3, 4, mean.f32());
  pool_max_neighbours_f32_f32_ref(x.f32(), 3, 4, max.f32());
  for (size_t i = 0; i < 4; ++i) {
    const float* v = x.f32() + 3 * i;
    EXPECT_EQ(mean.f32()[i], (v[0] + v[1] + v[2]) / 3.0f);
    EXPECT_EQ(max.f32()[i], std::max({v[0], v[1], v[2]}));
  }
}

TEST(Pool, LetsNanWinWhereverItStands) {
  for (size_t at = 0; at < 3; ++at) {
    float x[3] = {1, 2, 3};
    x[at] = std::nanf("");
    float y = 0;
    pool_max_f32_f32_ref(x, 3, 1, &y);
    EXPECT_TRUE(std::isnan(y));
    pool_mean_f32_f32_ref(x, 3, 1, &y);
    EXPECT_TRUE(std::isnan(y));
  }
}

struct Fixture {
  TestTensor x = f32_tensor("x", 5, 12), y = f32_tensor("y", 5, 4);
  OpRunner op{bind_pool};
  Fixture() {
    fill_uniform(x, 1);
    op.inputs = {&x};
    op.outputs = {&y};
    op.symbols = {2};
    options(schema::Pooling::Max, 3);
  }
  void options(schema::Pooling pooling, uint32_t group) {
    schema::PoolOptionsT value;
    value.pooling = pooling;
    value.group = group;
    op.options(value);
  }
};

TEST(Pool, RunsOverTheActualRowsOnlyEvenIfNone) {
  for (uint32_t rows : {0u, 2u}) {
    Fixture s;
    s.x.rows_symbol = s.y.rows_symbol = 0;
    s.op.symbols = {rows};
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t row = 0; row < 5; ++row) {
      for (size_t i = 0; i < 4; ++i) {
        const float* v = s.x.f32(row);
        const float expected = std::max({v[i], v[4 + i], v[8 + i]});
        if (row < rows) {
          EXPECT_EQ(s.y.f32(row)[i], expected);
        } else {
          EXPECT_TRUE(std::isnan(s.y.f32(row)[i])) << "untouched";
        }
      }
    }
  }
}

TEST(Pool, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "no PoolOptions"},
      {"pooling", [](Fixture& s) { s.options(static_cast<schema::Pooling>(2), 3); },
       "pooling is 2"},
      {"group 0", [](Fixture& s) { s.options(schema::Pooling::Mean, 0); }, "group is 0"},
      {"group", [](Fixture& s) { s.options(schema::Pooling::Mean, 2); }, "expected a width of 8"},
      // 3 + 2^30 times a width of 4 is 12 again in 32 bits.
      {"group wraps", [](Fixture& s) { s.options(schema::Pooling::Mean, 3 + (1u << 30)); },
       "expected a width of 4294967308"},
      {"inputs", [](Fixture& s) { s.op.inputs.clear(); }, "has 0 inputs"},
      {"type", [](Fixture& s) { s.x.type = DataType::kI8; }, "'x' is I8"},
      {"ring", [](Fixture& s) { s.x.ring = 0; }, "in a ring"},
      {"rows", [](Fixture& s) { s.y.rows = 4; }, "expected equal rows"},
      {"symbol", [](Fixture& s) { s.y.rows_symbol = 0; }, "expected equal rows"},
  });
}

}  // namespace
}  // namespace oxbow
