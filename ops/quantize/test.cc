#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ops/quantize/quantize.h"
#include "ops/testing/kernel_test.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

constexpr testing::Variant<QuantizeKernel> kVariants[] = {
#define OXB_KERNEL(isa, fn) {isa, fn, #fn},
#include "ops/quantize/kernels.inc"
#undef OXB_KERNEL
};

/// The rule, one element at a time and with the library's rounding. The quotient and the product
/// are single float roundings, so this is exact.
void expect_rule(const TestTensor& x, const TestTensor& q) {
  const size_t group_width = q.width / q.scale_groups;
  for (size_t g = 0; g < q.scale_groups; ++g) {
    float absmax = 0;
    for (size_t i = 0; i < group_width; ++i) {
      absmax = std::fmax(absmax, std::fabs(x.f32()[g * group_width + i]));
    }
    ASSERT_EQ(q.scales[g], absmax / 127.0f);
    for (size_t i = g * group_width; i < (g + 1) * group_width; ++i) {
      ASSERT_EQ(q.code(0, i), static_cast<int>(std::nearbyint(x.f32()[i] * (127.0f / absmax))))
          << i;
    }
  }
  for (size_t i = q.width; i < q.stride(); ++i) ASSERT_EQ(q.code(0, i), 0) << "padding " << i;
}

TEST(Quantize, EveryVariantFollowsTheRule) {
  testing::for_each_variant(kVariants, [&](QuantizeKernel kernel) {
    for (uint32_t groups : {1u, 2u, 3u, 8u}) {
      for (uint32_t size : testing::simd_sizes_up_to(130)) {
        SCOPED_TRACE(::testing::Message() << groups << " groups of " << size);
        TestTensor x = f32_tensor("x", 1, size * groups);
        TestTensor q = i8_tensor("q", 1, size * groups, groups);
        fill_uniform(x, size, -3, 3);
        kernel(x.f32(), x.width, groups, 0, q.i8(), q.scales);
        expect_rule(x, q);
      }
    }
  });
}

TEST(Quantize, EveryVariantGivesTheBitsOfTheReferenceOnNanInfinityAndTinyValues) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const std::vector<float> odd = {nan,    -nan, inf,   -inf,      3e38f, -3e38f, 1e-45f,
                                  1e-38f, 0.0f, -0.0f, 0x1p-100f, 1.0f,  -1.0f,  0x1p-101f};
  testing::for_each_variant(kVariants, [&](QuantizeKernel kernel) {
    for (size_t first = 0; first < odd.size(); ++first) {
      for (size_t second = 0; second < odd.size(); ++second) {
        TestTensor x = f32_tensor("x", 1, 19);
        fill(x, std::vector<float>(19, odd[first]));
        x.f32()[17] = odd[second];
        TestTensor q = i8_tensor("q", 1, 19), expected = i8_tensor("expected", 1, 19);
        kernel(x.f32(), 19, 1, 0, q.i8(), q.scales);
        quantize_f32_i8_ref(x.f32(), 19, 1, 0, expected.i8(), expected.scales);
        EXPECT_TRUE(std::isfinite(*q.scales));
        EXPECT_EQ(*q.scales, *expected.scales);
        EXPECT_EQ(std::memcmp(q.data, expected.data, q.stride()), 0);
      }
    }
  });
}

TEST(Quantize, AStaticScaleIsKeptAndSaturates) {
  const float inf = std::numeric_limits<float>::infinity();
  testing::for_each_variant(kVariants, [&](QuantizeKernel kernel) {
    for (uint32_t size : testing::simd_sizes_up_to(130)) {
      TestTensor x = f32_tensor("x", 1, size), q = i8_tensor("q", 1, size);
      fill_uniform(x, size, -3, 3);
      x.f32()[size / 2] = size % 3 == 0 ? inf : size % 3 == 1 ? -inf : std::nanf("");
      kernel(x.f32(), size, 1, 0.01f, q.i8(), q.scales);
      ASSERT_EQ(*q.scales, 0.01f);
      for (size_t i = 0; i < size; ++i) {
        const float scaled = std::nearbyint(x.f32()[i] * (1 / 0.01f));
        const float code = std::isnan(scaled) ? 0 : std::fmax(-127.0f, std::fmin(127.0f, scaled));
        ASSERT_EQ(q.code(0, i), static_cast<int>(code)) << i;
      }
      for (size_t i = size; i < q.stride(); ++i) ASSERT_EQ(q.code(0, i), 0) << "padding " << i;
    }
  });
}

struct Fixture {
  TestTensor x = f32_tensor("x", 5, 24), y = i8_tensor("y", 5, 24, 2);
  OpRunner op{bind_quantize};
  Fixture() {
    op.inputs = {&x};
    op.outputs = {&y};
    op.symbols = {3};
  }
};

TEST(Quantize, RunsOverTheActualRowsOnly) {
  Fixture s;
  fill_uniform(s.x, 1);
  s.x.rows_symbol = s.y.rows_symbol = 0;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t row = 0; row < 3; ++row) {
    for (size_t i = 0; i < 24; ++i) {
      // Half a step, and a few roundings around 127.
      EXPECT_NEAR(s.y.value(row, i), s.x.value(row, i), s.y.row_scales(row)[i / 12] * 0.5001);
    }
  }
  EXPECT_TRUE(std::isnan(s.y.row_scales(3)[0])) << "untouched";
  EXPECT_EQ(s.y.code(3, 0), -1) << "untouched";
}

TEST(Quantize, RunsWithTheTensorsStaticScale) {
  TestTensor x = f32_tensor("x", 2, 24), y = i8_tensor("y", 2, 24);
  fill_uniform(x, 1);
  y.static_scale = 0.02f;
  OpRunner op(bind_quantize);
  op.inputs = {&x};
  op.outputs = {&y};
  ASSERT_EQ(op.bind_and_run(), Status::kOk) << op.message();
  for (size_t row = 0; row < 2; ++row) {
    EXPECT_EQ(y.row_scales(row)[0], 0.02f);
    for (size_t i = 0; i < 24; ++i) EXPECT_NEAR(y.value(row, i), x.value(row, i), 0.010001);
  }
}

TEST(Quantize, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"inputs", [](Fixture& s) { s.op.inputs.push_back(&s.x); }, "has 2 inputs"},
      {"input type", [](Fixture& s) { s.op.inputs = {&s.y}; }, "'y' is I8"},
      {"output type", [](Fixture& s) { s.op.outputs = {&s.x}; }, "'x' is F32"},
      {"packed", [](Fixture& s) { s.y.layout = Layout::kBlock8x4; }, "in blocks"},
      {"ring", [](Fixture& s) { s.y.ring = 0; }, "in a ring"},
      {"groups", [](Fixture& s) { s.y.scale_groups = 5; }, "divide the width"},
      {"no groups", [](Fixture& s) { s.y.scale_groups = 0; }, "divide the width"},
      {"width", [](Fixture& s) { s.x.width = 23; }, "expected a width of 23"},
      {"rows", [](Fixture& s) { s.x.rows = 6; }, "expected equal rows"},
      {"symbol", [](Fixture& s) { s.x.rows_symbol = 0; }, "expected equal rows"},
  });
}

}  // namespace
}  // namespace oxbow
