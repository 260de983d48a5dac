#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/layer_norm/layer_norm.h"
#include "ops/testing/kernel_test.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::TestTensor;

constexpr testing::Variant<LayerNormKernel> kVariants[] = {
#define OXB_KERNEL(isa, fn) {isa, fn, #fn},
#include "ops/layer_norm/kernels.inc"
#undef OXB_KERNEL
};

std::vector<double> formula(const TestTensor& x, size_t row, const TestTensor& weight,
                            const TestTensor& bias, double epsilon) {
  double mean = 0, variance = 0;
  for (size_t i = 0; i < x.width; ++i) mean += x.value(row, i) / x.width;
  for (size_t i = 0; i < x.width; ++i) variance += std::pow(x.value(row, i) - mean, 2) / x.width;
  std::vector<double> y(x.width);
  for (size_t i = 0; i < x.width; ++i) {
    y[i] = (x.value(row, i) - mean) / std::sqrt(variance + epsilon) * weight.value(0, i) +
           bias.value(0, i);
  }
  return y;
}

TEST(LayerNorm, ReferenceFollowsTheFormulaAndEveryVariantTheReference) {
  for (uint32_t size : testing::simd_sizes_up_to(1025)) {
    SCOPED_TRACE(size);
    TestTensor x = f32_tensor("x", 1, size), y = f32_tensor("y", 1, size);
    TestTensor weight = f32_tensor("weight", 1, size), bias = f32_tensor("bias", 1, size);
    fill_uniform(x, size, -1, 3);
    fill_uniform(weight, size + 1);
    fill_uniform(bias, size + 2);
    const LayerNormParams params = {weight.f32(), bias.f32(), 1e-5f};
    layer_norm_f32_f32_ref(x.f32(), size, params, y.f32());
    const std::vector<double> expected = formula(x, 0, weight, bias, double{1e-5f});
    // Sums of size/8 + 3 terms up to 3 in each lane, at 2^-24 per rounding; at size 1 and 2 the
    // deviation may be as small as the error of the mean, which 1 / sqrt(epsilon) = 316 then
    // multiplies.
    const double tolerance = (size / 8.0 + 16) * 0x1p-24 * 3 * (size <= 4 ? 316 : 4);
    for (uint32_t i = 0; i < size; ++i) ASSERT_NEAR(y.f32()[i], expected[i], tolerance) << i;

    testing::for_each_variant(kVariants, [&](LayerNormKernel kernel) {
      TestTensor z = f32_tensor("z", 1, size);
      kernel(x.f32(), size, params, z.f32());
      for (uint32_t i = 0; i < size; ++i) ASSERT_EQ(z.f32()[i], y.f32()[i]) << i;
    });
  }
}

TEST(LayerNorm, DividesByTheUnbiasedDeviationIfAsked) {
  for (uint32_t size : testing::simd_sizes_up_to(129)) {
    if (size == 1) continue;
    SCOPED_TRACE(size);
    TestTensor x = f32_tensor("x", 1, size), y = f32_tensor("y", 1, size);
    TestTensor weight = f32_tensor("weight", 1, size), bias = f32_tensor("bias", 1, size);
    fill_uniform(x, size, -1, 3);
    fill_uniform(weight, size + 1);
    fill_uniform(bias, size + 2);
    // So large that it matters where it is added.
    const LayerNormParams params = {weight.f32(), bias.f32(), 0.25f, true};
    layer_norm_f32_f32_ref(x.f32(), size, params, y.f32());
    double mean = 0, squares = 0;
    for (uint32_t i = 0; i < size; ++i) mean += x.value(0, i) / size;
    for (uint32_t i = 0; i < size; ++i) squares += std::pow(x.value(0, i) - mean, 2);
    const double divisor = std::sqrt(squares / (size - 1)) + 0.25;
    // Sums as above, divided by at least 0.25.
    const double tolerance = (size / 8.0 + 16) * 0x1p-24 * 3 * 4;
    for (uint32_t i = 0; i < size; ++i) {
      ASSERT_NEAR(y.f32()[i],
                  (x.value(0, i) - mean) / divisor * weight.value(0, i) + bias.value(0, i),
                  tolerance);
    }
    testing::for_each_variant(kVariants, [&](LayerNormKernel kernel) {
      TestTensor z = f32_tensor("z", 1, size);
      kernel(x.f32(), size, params, z.f32());
      for (uint32_t i = 0; i < size; ++i) ASSERT_EQ(z.f32()[i], y.f32()[i]) << i;
    });
  }
}

struct Fixture : testing::RowOpFixture {
  TestTensor weight = f32_tensor("weight", 1, 24), bias = f32_tensor("bias", 1, 24);
  Fixture() : RowOpFixture(bind_layer_norm, 5, 24, 3) {
    fill_uniform(weight, 2);
    fill_uniform(bias, 3);
    op.inputs = {&x, &weight, &bias};
    epsilon(1e-5f);
  }
  void epsilon(float value) {
    schema::LayerNormOptionsT options;
    options.epsilon = value;
    op.options(options);
  }
};

TEST(LayerNorm, RunsOverTheActualRowsOnly) {
  Fixture s;
  testing::expect_only_actual_rows(s.op);
  for (size_t row = 0; row < 4; ++row) {
    const std::vector<double> expected = formula(s.x, row, s.weight, s.bias, 1e-5);
    for (size_t i = 0; i < 24; ++i) EXPECT_NEAR(s.y.f32(row)[i], expected[i], 5e-6);
  }
}

TEST(LayerNorm, GroupsAreRowsOfTheirOwnAndShareAWeightOrHaveTheirs) {
  for (const uint32_t weights : {0u, 8u, 24u}) {
    Fixture s;
    schema::LayerNormOptionsT options;
    options.epsilon = 1e-5f;
    options.groups = 3;
    s.op.options(options);
    s.weight.width = s.bias.width = weights;
    if (weights == 0) s.op.inputs.resize(1);
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t g = 0; g < 3; ++g) {
      TestTensor x = f32_tensor("x", 1, 8), weight = f32_tensor("weight", 1, 8),
                 bias = f32_tensor("bias", 1, 8);
      for (size_t i = 0; i < 8; ++i) {
        const size_t at = weights == 8 ? i : 8 * g + i;
        x.f32()[i] = s.x.f32(2)[8 * g + i];
        weight.f32()[i] = weights == 0 ? 1.0f : s.weight.f32()[at];
        bias.f32()[i] = weights == 0 ? 0.0f : s.bias.f32()[at];
      }
      const std::vector<double> expected = formula(x, 0, weight, bias, 1e-5);
      for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(s.y.f32(2)[8 * g + i], expected[i], 5e-6);
    }
  }
}

TEST(LayerNorm, ToInt8IsTheFloatRowQuantised) {
  testing::expect_int8_is_float_quantised<Fixture>();
}

TEST(LayerNorm, NanAndInfinitySpoilTheirOwnRowOnly) {
  testing::expect_nan_and_infinity_spoil_their_own_row_only<Fixture>();
}

TEST(LayerNorm, OfEqualValuesIsTheBias) {
  Fixture s;
  for (size_t i = 0; i < 5 * 24; ++i) s.x.f32()[i] = 2.0f;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(s.y.f32(4)[i], s.bias.f32()[i]);
}

TEST(LayerNorm, RefusesStepsThatMakeNoSense) {
  testing::expect_output_refusals<Fixture>();
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "no LayerNormOptions"},
      {"wrong options", [](Fixture& s) { s.op.options(schema::LinearOptionsT()); },
       "no LayerNormOptions"},
      {"epsilon 0", [](Fixture& s) { s.epsilon(0); }, "epsilon is 0"},
      {"epsilon < 0", [](Fixture& s) { s.epsilon(-1); }, "epsilon is -1"},
      {"epsilon nan", [](Fixture& s) { s.epsilon(std::nanf("")); }, "epsilon is"},
      {"epsilon inf", [](Fixture& s) { s.epsilon(HUGE_VALF); }, "epsilon is inf"},
      {"no bias", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 2 inputs"},
      {"x type", [](Fixture& s) { s.op.inputs[0] = &s.q; }, "'q' is I8"},
      {"weight rows", [](Fixture& s) { s.op.inputs[1] = &s.y; }, "exactly one row"},
      {"weight symbol", [](Fixture& s) { s.weight.rows_symbol = 0; }, "exactly one row"},
      {"weight width", [](Fixture& s) { s.weight.width = 23; }, "expected a width of 24"},
      {"bias width", [](Fixture& s) { s.bias.width = 25; }, "expected a width of 24"},
      {"bias ring", [](Fixture& s) { s.bias.ring = 0; }, "in a ring"},
  });
}

}  // namespace
}  // namespace oxbow
