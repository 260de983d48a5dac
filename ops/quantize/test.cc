#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ops/quantize/quantize.h"
#include "ops/testing/kernel_test.h"
#include "ops/testing/team.h"
#include "runtime/base/hadamard.h"

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
        kernel(x.f32(), x.width, {.groups = groups}, q.i8(), q.scales);
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
        kernel(x.f32(), 19, {}, q.i8(), q.scales);
        quantize_f32_i8_ref(x.f32(), 19, {}, expected.i8(), expected.scales);
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
      kernel(x.f32(), size, {.static_scale = 0.01f}, q.i8(), q.scales);
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

/// The sum of x_i times the signs of the Walsh-Hadamard matrix, in double.
double walsh_sum(const float* x, size_t block, size_t row) {
  double sum = 0;
  for (size_t i = 0; i < block; ++i) sum += std::popcount(row & i) % 2 == 0 ? x[i] : -x[i];
  return sum;
}

TEST(Quantize, EveryVariantTurnsRowsToTheSameBits) {
  testing::for_each_variant(kVariants, [&](QuantizeKernel kernel) {
    for (uint32_t block = kMinHadamardBlock; block <= kMaxHadamardBlock; block *= 2) {
      for (uint32_t blocks : {1u, 3u, 8u}) {
        SCOPED_TRACE(::testing::Message() << blocks << " blocks of " << block);
        TestTensor x = f32_tensor("x", 1, block * blocks), q = i8_tensor("q", 1, x.width);
        fill_uniform(x, block + blocks, -3, 3);
        std::vector<float> expected(x.f32(), x.f32() + x.width);
        TestTensor codes = i8_tensor("codes", 1, x.width);
        quantize_f32_i8_ref(expected.data(), x.width, {.hadamard = block}, codes.i8(),
                            codes.scales);
        kernel(x.f32(), x.width, {.hadamard = block}, q.i8(), q.scales);
        EXPECT_EQ(std::memcmp(x.f32(), expected.data(), x.width * sizeof(float)), 0);
        EXPECT_TRUE(testing::same_bits(q, codes));
      }
    }
  });
}

TEST(Quantize, ATurnedRowIsTheWalshHadamardTransformOfItsBlocks) {
  TestTensor x = f32_tensor("x", 1, 3 * 64), turned = f32_tensor("turned", 1, 3 * 64);
  fill_uniform(x, 7);
  std::copy_n(x.f32(), x.width, turned.f32());
  quantize_f32_i8_ref(turned.f32(), x.width, {.hadamard = 64}, nullptr, nullptr);
  for (size_t i = 0; i < x.width; ++i) {
    EXPECT_NEAR(turned.f32()[i], walsh_sum(x.f32() + i / 64 * 64, 64, i % 64), 1e-5) << i;
  }
}

TEST(Quantize, InATurnedRowOneNanTakesItsBlockOnly) {
  testing::for_each_variant(kVariants, [&](QuantizeKernel kernel) {
    TestTensor x = f32_tensor("x", 1, 64), q = i8_tensor("q", 1, 64);
    fill_uniform(x, 3);
    x.f32()[20] = std::nanf("");
    kernel(x.f32(), 64, {.hadamard = 16}, q.i8(), q.scales);
    EXPECT_TRUE(std::isfinite(*q.scales));
    for (size_t i = 16; i < 32; ++i) EXPECT_EQ(q.code(0, i), 0);
    EXPECT_NE(q.code(0, 3), 0);
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

TEST(Quantize, LeavesItsInputAloneWhenItTurnsRows) {
  TestTensor x = f32_tensor("x", 3, 48), y = i8_tensor("y", 3, 48),
             expected = i8_tensor("e", 3, 48);
  fill_uniform(x, 1);
  const std::vector<float> before(x.f32(), x.f32() + 3 * 48);
  y.hadamard = 16;
  for (const bool reference_only : {false, true}) {
    OpRunner op(bind_quantize);
    op.inputs = {&x};
    op.outputs = {&y};
    op.reference_only = reference_only;
    ASSERT_EQ(op.bind_and_run(), Status::kOk) << op.message();
    EXPECT_EQ(std::memcmp(x.f32(), before.data(), before.size() * sizeof(float)), 0);
    for (size_t row = 0; row < 3; ++row) {
      std::vector<float> turned(x.f32(row), x.f32(row) + 48);
      quantize_f32_i8_ref(turned.data(), 48, {.hadamard = 16}, expected.i8(row),
                          expected.row_scales(row));
    }
    EXPECT_TRUE(testing::same_bits(y, expected));
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
      {"turned input", [](Fixture& s) { s.x.hadamard = 16; }, "expected rows that are not turned"},
  });
}

}  // namespace
}  // namespace oxbow
