#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/rms_norm/rms_norm.h"
#include "ops/testing/kernel_test.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::TestTensor;

constexpr testing::Variant<RmsNormKernel> kVariants[] = {
#define OXB_KERNEL(isa, fn) {isa, fn, #fn},
#include "ops/rms_norm/kernels.inc"
#undef OXB_KERNEL
};

std::vector<double> formula(const TestTensor& x, size_t row, const TestTensor& weight,
                            double epsilon) {
  double mean = 0;
  for (size_t i = 0; i < x.width; ++i) mean += x.value(row, i) * x.value(row, i) / x.width;
  std::vector<double> y(x.width);
  for (size_t i = 0; i < x.width; ++i) {
    y[i] = x.value(row, i) / std::sqrt(mean + epsilon) * weight.value(0, i);
  }
  return y;
}

TEST(RmsNorm, ReferenceFollowsTheFormulaAndEveryVariantTheReference) {
  for (uint32_t size : testing::simd_sizes_up_to(1025)) {
    SCOPED_TRACE(size);
    TestTensor x = f32_tensor("x", 1, size), y = f32_tensor("y", 1, size);
    TestTensor weight = f32_tensor("weight", 1, size);
    fill_uniform(x, size, -1, 3);
    fill_uniform(weight, size + 1);
    const RmsNormParams params = {weight.f32(), 1e-5f};
    rms_norm_f32_f32_ref(x.f32(), size, params, y.f32());
    const std::vector<double> expected = formula(x, 0, weight, double{1e-5f});
    // Squares are positive, so the relative error of their sum is that of size/8 + 4 roundings; the
    // root halves it. Six more follow.
    const double tolerance = (size / 16.0 + 8) * 0x1p-24;
    for (uint32_t i = 0; i < size; ++i) {
      ASSERT_NEAR(y.f32()[i], expected[i], tolerance * std::fabs(expected[i])) << i;
    }

    testing::for_each_variant(kVariants, [&](RmsNormKernel kernel) {
      TestTensor z = f32_tensor("z", 1, size);
      kernel(x.f32(), size, params, z.f32());
      for (uint32_t i = 0; i < size; ++i) ASSERT_EQ(z.f32()[i], y.f32()[i]) << i;
      kernel(x.f32(), size, params, x.f32());
      for (uint32_t i = 0; i < size; ++i) ASSERT_EQ(x.f32()[i], y.f32()[i]) << "in place " << i;
      fill_uniform(x, size, -1, 3);
    });
  }
}

struct Fixture : testing::RowOpFixture {
  TestTensor weight = f32_tensor("weight", 1, 24);
  Fixture() : RowOpFixture(bind_rms_norm, 5, 24, 3) {
    fill_uniform(weight, 2);
    op.inputs = {&x, &weight};
    epsilon(1e-5f);
  }
  void epsilon(float value) {
    schema::RmsNormOptionsT options;
    options.epsilon = value;
    op.options(options);
  }
  void groups(uint32_t count) {
    schema::RmsNormOptionsT options;
    options.groups = count;
    op.options(options);
  }
};

TEST(RmsNorm, RunsOverTheActualRowsOnly) {
  Fixture s;
  testing::expect_only_actual_rows(s.op);
  for (size_t row = 0; row < 4; ++row) {
    const std::vector<double> expected = formula(s.x, row, s.weight, 1e-5);
    for (size_t i = 0; i < 24; ++i) EXPECT_NEAR(s.y.f32(row)[i], expected[i], 5e-6);
  }
}

TEST(RmsNorm, GroupsAreRowsOfTheirOwnAndShareAWeightOrHaveTheirs) {
  for (const uint32_t weights : {0u, 8u, 24u}) {
    Fixture s;
    schema::RmsNormOptionsT options;
    options.epsilon = 1e-5f;
    options.groups = 3;
    s.op.options(options);
    s.weight.width = weights;
    if (weights == 0) s.op.inputs.pop_back();
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t g = 0; g < 3; ++g) {
      TestTensor x = f32_tensor("x", 1, 8), weight = f32_tensor("weight", 1, 8);
      for (size_t i = 0; i < 8; ++i) {
        x.f32()[i] = s.x.f32(2)[8 * g + i];
        weight.f32()[i] = weights == 0 ? 1.0f : s.weight.f32()[weights == 8 ? i : 8 * g + i];
      }
      const std::vector<double> expected = formula(x, 0, weight, 1e-5);
      for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(s.y.f32(2)[8 * g + i], expected[i], 5e-6);
    }
  }
}

TEST(RmsNorm, ToInt8IsTheFloatRowQuantised) { testing::expect_int8_is_float_quantised<Fixture>(); }

TEST(RmsNorm, NanAndInfinitySpoilTheirOwnRowOnly) {
  testing::expect_nan_and_infinity_spoil_their_own_row_only<Fixture>();
}

TEST(RmsNorm, OfZerosIsZerosAndOfAlternatingSignsTheWeight) {
  Fixture s;
  for (size_t i = 0; i < 24; ++i) {
    s.x.f32(0)[i] = 0.0f;
    s.x.f32(1)[i] = i % 2 == 0 ? 512.0f : -512.0f;
  }
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  for (size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(s.y.f32(0)[i], 0.0f);
    EXPECT_EQ(s.y.f32(1)[i], i % 2 == 0 ? s.weight.f32()[i] : -s.weight.f32()[i]);
  }
}

TEST(RmsNorm, GivesTheSameBitsWithAnyNumberOfThreads) {
  Fixture one, three;
  one.op.outputs = {&one.q};
  ASSERT_EQ(one.op.bind_and_run(), Status::kOk);
  const testing::Team team(3);
  three.op.outputs = {&three.q};
  three.op.threads = 3;
  three.op.pool = team.pool();
  three.op.reference_only = false;
  ASSERT_EQ(three.op.bind_and_run(), Status::kOk);
  EXPECT_TRUE(testing::same_bits(one.q, three.q));
}

TEST(RmsNorm, RefusesStepsThatMakeNoSense) {
  testing::expect_output_refusals<Fixture>();
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "no RmsNormOptions"},
      {"wrong options", [](Fixture& s) { s.op.options(schema::LinearOptionsT()); },
       "no RmsNormOptions"},
      {"epsilon 0", [](Fixture& s) { s.epsilon(0); }, "epsilon is 0"},
      {"epsilon < 0", [](Fixture& s) { s.epsilon(-1); }, "epsilon is -1"},
      {"epsilon nan", [](Fixture& s) { s.epsilon(std::nanf("")); }, "epsilon is"},
      {"epsilon inf", [](Fixture& s) { s.epsilon(HUGE_VALF); }, "epsilon is inf"},
      {"groups 0", [](Fixture& s) { s.groups(0); }, "groups is 0"},
      {"groups", [](Fixture& s) { s.groups(5); }, "groups is 5"},
      {"no x", [](Fixture& s) { s.op.inputs.clear(); }, "has 0 inputs"},
      {"x type", [](Fixture& s) { s.op.inputs[0] = &s.q; }, "'q' is I8"},
      {"weight rows", [](Fixture& s) { s.op.inputs[1] = &s.y; }, "exactly one row"},
      {"weight symbol", [](Fixture& s) { s.weight.rows_symbol = 0; }, "exactly one row"},
      {"weight width", [](Fixture& s) { s.weight.width = 23; }, "expected a width of 24"},
      {"weight ring", [](Fixture& s) { s.weight.ring = 0; }, "in a ring"},
  });
}

}  // namespace
}  // namespace oxbow
