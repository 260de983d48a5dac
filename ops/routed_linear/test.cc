#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "ops/linear/linear.h"
#include "ops/routed_linear/routed_linear.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using testing::block_tensor;
using testing::f32_tensor;
using testing::i32_tensor;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Sizes {
  uint32_t rows = 60, experts = 3, width = 20, depth = 13;
  bool i8_x = false, i8_weight = false;
};

struct Fixture {
  Sizes sizes;
  TestTensor x, routes, weight, bias, y;
  OpRunner op{bind_routed_linear};

  explicit Fixture(const Sizes& s = {})
      : sizes(s),
        x(s.i8_x ? i8_tensor("x", s.rows, s.depth) : f32_tensor("x", s.rows, s.depth)),
        routes(i32_tensor("routes", s.rows, 1)),
        weight(s.i8_weight ? block_tensor("weight", s.experts * pitch(), s.depth)
                           : f32_tensor("weight", s.experts * pitch(), s.depth)),
        bias(f32_tensor("bias", s.experts, s.width)),
        y(f32_tensor("y", s.rows, s.width)) {
    fill_uniform(x, 1);
    fill_uniform(weight, 2);
    fill_uniform(bias, 3);
    std::mt19937 random(4);
    for (uint32_t r = 0; r < s.rows; ++r) {
      routes.i32()[r] = static_cast<int32_t>(random() % s.experts);
    }
    routes.limit = s.experts;
    for (TestTensor* t : {&x, &routes, &y}) t->rows_symbol = 0;
    op.symbols = op.symbol_maxima = {s.rows};
    op.settable_symbols = {false};
    op.inputs = {&x, &routes, &weight, &bias};
    op.outputs = {&y};
    options(s.experts, true);
  }
  uint32_t pitch() const { return (sizes.width + 7) / 8 * 8; }
  void options(uint32_t experts, bool has_bias) {
    schema::RoutedLinearOptionsT o;
    o.experts = experts;
    o.has_bias = has_bias;
    op.options(o);
  }
};

/// What the linear op gives for one row with the matrix of one expert.
std::vector<float> one_row(const Fixture& s, size_t row, bool reference_only) {
  const Sizes& n = s.sizes;
  TestTensor x = n.i8_x ? i8_tensor("x", 1, n.depth) : f32_tensor("x", 1, n.depth);
  TestTensor weight = n.i8_weight ? block_tensor("weight", n.width, n.depth)
                                  : f32_tensor("weight", n.width, n.depth);
  TestTensor bias = f32_tensor("bias", 1, n.width), y = f32_tensor("y", 1, n.width);
  const auto expert = static_cast<size_t>(s.routes.i32()[row]);
  std::memcpy(x.data, s.x.data + row * s.x.stride(), x.stride());
  if (n.i8_x) *x.row_scales(0) = *s.x.row_scales(row);
  std::memcpy(bias.data, s.bias.f32(expert), bias.stride());
  for (uint32_t c = 0; c < n.width; ++c) {
    const size_t from = expert * s.pitch() + c;
    if (!n.i8_weight) {
      std::memcpy(weight.f32(c), s.weight.f32(from), weight.stride());
      continue;
    }
    *weight.row_scales(c) = *s.weight.row_scales(from);
    for (uint32_t k = 0; k < n.depth; ++k) weight.set_code(c, k, s.weight.code(from, k));
  }
  OpRunner op(bind_linear);
  schema::LinearOptionsT o;
  o.has_bias = true;
  op.options(o);
  op.inputs = {&x, &weight, &bias};
  op.outputs = {&y};
  op.reference_only = reference_only;
  EXPECT_EQ(op.bind_and_run(), Status::kOk) << op.message();
  return {y.f32(), y.f32() + n.width};
}

std::vector<Sizes> all_types(Sizes sizes) {
  std::vector<Sizes> list(3, sizes);
  list[1].i8_weight = list[2].i8_weight = list[2].i8_x = true;
  return list;
}

TEST(RoutedLinear, EveryRowIsThatOfTheLinearLayerOfItsExpert) {
  for (const Sizes& shape : {Sizes{}, Sizes{1, 1, 8, 4}, Sizes{100, 7, 300, 33}}) {
    for (const Sizes& sizes : all_types(shape)) {
      for (const bool reference_only : {true, false}) {
        Fixture s(sizes);
        s.op.reference_only = reference_only;
        ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
        for (uint32_t row = 0; row < sizes.rows; ++row) {
          const std::vector<float> expected = one_row(s, row, reference_only);
          ASSERT_EQ(std::memcmp(s.y.f32(row), expected.data(), s.y.stride()), 0) << row;
        }
      }
    }
  }
}

TEST(RoutedLinear, WeightsOfExpertsNobodyChoseAreNotRead) {
  Fixture s;
  for (uint32_t r = 0; r < s.sizes.rows; ++r) s.routes.i32()[r] = r % 2 == 0 ? 0 : 2;
  const size_t begin = s.pitch(), end = 2 * s.pitch();
  for (size_t row = begin; row < end; ++row)
    std::memset(s.weight.f32(row), 0xff, s.weight.stride());
  std::memset(s.bias.f32(1), 0xff, s.bias.stride());
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (uint32_t r = 0; r < s.sizes.rows; ++r) {
    for (uint32_t i = 0; i < s.sizes.width; ++i) ASSERT_FALSE(std::isnan(s.y.value(r, i)));
  }
}

TEST(RoutedLinear, ThreadsAndFewerRowsDoNotChangeTheBits) {
  for (const Sizes& sizes : all_types({100, 5, 600, 24})) {
    Fixture one(sizes), many(sizes), fewer(sizes);
    testing::Team team(3);
    many.op.threads = 3;
    many.op.pool = team.pool();
    fewer.op.symbols = {41};
    for (Fixture* s : {&one, &many, &fewer}) {
      ASSERT_EQ(s->op.bind_and_run(), Status::kOk) << s->op.message();
    }
    EXPECT_TRUE(testing::same_bits(one.y, many.y));
    EXPECT_EQ(std::memcmp(one.y.data, fewer.y.data, 41 * one.y.stride()), 0);
    EXPECT_TRUE(std::isnan(fewer.y.value(41, 0))) << "untouched";
  }
}

TEST(RoutedLinear, RefusesExpertsThatThereAreNot) {
  for (const int32_t wrong : {-1, 3, INT32_MAX, INT32_MIN}) {
    Fixture s;
    s.routes.i32()[7] = wrong;
    ASSERT_EQ(s.op.bind(), Status::kOk);
    EXPECT_EQ(s.op.run(), Status::kInvalidArgument) << wrong;
  }
}

TEST(RoutedLinear, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no experts", [](Fixture& s) { s.options(0, true); }, "has 0 experts"},
      {"experts", [](Fixture& s) { s.options(4, true); }, "expected 96 rows"},
      {"weight rows", [](Fixture& s) { s.weight.rows = 60; }, "expected 72 rows"},
      {"bias rows", [](Fixture& s) { s.bias.rows = 2; }, "expected 3 rows"},
      {"bias width", [](Fixture& s) { s.bias.width = 19; }, "expected"},
      {"int8 x with float weights",
       [](Fixture& s) {
         s.x.type = DataType::kI8;
         s.x.scale_groups = 1;
       },
       "since 'x' is I8"},
  });
}

}  // namespace
}  // namespace oxbow
