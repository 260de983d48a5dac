#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/quantize/quantize.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

struct Variant {
  Isa isa;
  RmsNormKernel kernel;
  const char* name;
};

constexpr Variant kVariants[] = {
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

    for (const Variant& variant : kVariants) {
      if (!cpu_supports(variant.isa)) continue;
      SCOPED_TRACE(variant.name);
      TestTensor z = f32_tensor("z", 1, size);
      variant.kernel(x.f32(), size, params, z.f32());
      for (uint32_t i = 0; i < size; ++i) ASSERT_EQ(z.f32()[i], y.f32()[i]) << i;
      variant.kernel(x.f32(), size, params, x.f32());
      for (uint32_t i = 0; i < size; ++i) ASSERT_EQ(x.f32()[i], y.f32()[i]) << "in place " << i;
      fill_uniform(x, size, -1, 3);
    }
  }
}

struct Fixture {
  TestTensor x = f32_tensor("x", 5, 24), y = f32_tensor("y", 5, 24);
  TestTensor weight = f32_tensor("weight", 1, 24);
  TestTensor q = i8_tensor("q", 5, 24, 3);
  OpRunner op{bind_rms_norm};
  Fixture() {
    fill_uniform(x, 1);
    fill_uniform(weight, 2);
    op.inputs = {&x, &weight};
    op.outputs = {&y};
    op.symbols = {4};
    epsilon(1e-5f);
  }
  void epsilon(float value) {
    schema::RmsNormOptionsT options;
    options.epsilon = value;
    op.options(options);
  }
};

TEST(RmsNorm, RunsOverTheActualRowsOnly) {
  Fixture s;
  s.x.rows_symbol = s.y.rows_symbol = 0;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t row = 0; row < 4; ++row) {
    const std::vector<double> expected = formula(s.x, row, s.weight, 1e-5);
    for (size_t i = 0; i < 24; ++i) EXPECT_NEAR(s.y.f32(row)[i], expected[i], 5e-6);
  }
  EXPECT_TRUE(std::isnan(s.y.f32(4)[0])) << "untouched";
}

TEST(RmsNorm, ToInt8IsTheFloatRowQuantised) {
  Fixture f32, i8;
  ASSERT_EQ(f32.op.bind_and_run(), Status::kOk);
  i8.op.outputs = {&i8.q};
  i8.op.threads = 3;
  ASSERT_EQ(i8.op.bind_and_run(), Status::kOk) << i8.op.message();
  EXPECT_EQ(i8.op.scratch_bytes(), 3 * 128u)
      << "a row of 24 floats on whole cache lines, per thread";
  for (size_t row = 0; row < 5; ++row) {
    TestTensor expected = i8_tensor("expected", 1, 24, 3);
    quantize_f32_i8_ref(f32.y.f32(row), 24, 3, 0, expected.i8(), expected.scales);
    for (size_t i = 0; i < 32; ++i) EXPECT_EQ(i8.q.i8(row)[i], expected.i8()[i]);
    for (size_t g = 0; g < 3; ++g) EXPECT_EQ(i8.q.row_scales(row)[g], expected.scales[g]);
  }
}

TEST(RmsNorm, NanAndInfinitySpoilTheirOwnRowOnly) {
  Fixture s;
  s.x.f32(1)[3] = std::nanf("");
  s.x.f32(2)[7] = std::numeric_limits<float>::infinity();
  s.op.outputs = {&s.q};
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  for (size_t row : {1, 2}) {
    for (size_t i = 0; i < 24; ++i) EXPECT_EQ(s.q.code(row, i), 0);
  }
  EXPECT_NE(s.q.row_scales(0)[0], 0.0f);
  EXPECT_NE(s.q.row_scales(3)[0], 0.0f);
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
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "no RmsNormOptions"},
      {"wrong options", [](Fixture& s) { s.op.options(schema::LinearOptionsT()); },
       "no RmsNormOptions"},
      {"epsilon 0", [](Fixture& s) { s.epsilon(0); }, "epsilon is 0"},
      {"epsilon < 0", [](Fixture& s) { s.epsilon(-1); }, "epsilon is -1"},
      {"epsilon nan", [](Fixture& s) { s.epsilon(std::nanf("")); }, "epsilon is"},
      {"epsilon inf", [](Fixture& s) { s.epsilon(HUGE_VALF); }, "epsilon is inf"},
      {"no weight", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 1 inputs"},
      {"x type", [](Fixture& s) { s.op.inputs[0] = &s.q; }, "'q' is I8"},
      {"weight rows", [](Fixture& s) { s.op.inputs[1] = &s.y; }, "exactly one row"},
      {"weight symbol", [](Fixture& s) { s.weight.rows_symbol = 0; }, "exactly one row"},
      {"weight width", [](Fixture& s) { s.weight.width = 23; }, "expected a width of 24"},
      {"weight ring", [](Fixture& s) { s.weight.ring = 0; }, "in a ring"},
      {"y type", [](Fixture& s) { s.y.type = DataType::kI32; }, "expected F32 or I8"},
      {"y groups",
       [](Fixture& s) {
         s.op.outputs = {&s.q};
         s.q.scale_groups = 7;
       },
       "divide the width"},
      {"y width", [](Fixture& s) { s.y.width = 25; }, "expected a width of 24"},
      {"y rows", [](Fixture& s) { s.y.rows_symbol = 0; }, "expected equal rows"},
      {"y ring", [](Fixture& s) { s.y.ring = 0; }, "in a ring"},
  });
}

}  // namespace
}  // namespace oxbow
