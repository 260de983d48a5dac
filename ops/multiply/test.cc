#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/multiply/multiply.h"
#include "ops/quantize/quantize.h"
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
  MultiplyKernel kernel;
  const char* name;
};

constexpr Variant kVariants[] = {
#define OXB_KERNEL(isa, fn) {isa, fn, #fn},
#include "ops/multiply/kernels.inc"
#undef OXB_KERNEL
};

TEST(Multiply, EveryVariantMultipliesExactlyAlsoInPlace) {
  for (const Variant& variant : kVariants) {
    if (!cpu_supports(variant.isa)) continue;
    SCOPED_TRACE(variant.name);
    for (uint32_t size : testing::simd_sizes_up_to(130)) {
      TestTensor a = f32_tensor("a", 1, size), b = f32_tensor("b", 1, size);
      TestTensor y = f32_tensor("y", 1, size);
      fill_uniform(a, size);
      fill_uniform(b, size + 1000, -1e3f, 1e3f);
      variant.kernel(a.f32(), b.f32(), size, y.f32());
      // A product of two floats is exact in double, and rounded once.
      for (uint32_t i = 0; i < size; ++i) {
        ASSERT_EQ(y.f32()[i], static_cast<float>(a.value(0, i) * b.value(0, i)));
      }
      variant.kernel(a.f32(), b.f32(), size, b.f32());
      for (uint32_t i = 0; i < size; ++i) ASSERT_EQ(b.f32()[i], y.f32()[i]) << "in place";
    }
  }
}

struct Fixture {
  TestTensor a = f32_tensor("a", 9, 60), b = f32_tensor("b", 9, 60);
  TestTensor y = f32_tensor("y", 9, 60), q = i8_tensor("q", 9, 60, 4);
  OpRunner op{bind_multiply};
  Fixture() {
    fill_uniform(a, 1);
    fill_uniform(b, 2);
    op.inputs = {&a, &b};
    op.outputs = {&y};
    op.symbols = {8};
  }
};

TEST(Multiply, RunsOverTheActualRowsOnly) {
  Fixture s;
  for (TestTensor* tensor : {&s.a, &s.b, &s.y}) tensor->rows_symbol = 0;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  EXPECT_EQ(s.op.scratch_bytes(), 0u);
  for (size_t i = 0; i < 480; ++i) ASSERT_EQ(s.y.f32()[i], s.a.f32()[i] * s.b.f32()[i]);
  for (size_t i = 480; i < 540; ++i) ASSERT_TRUE(std::isnan(s.y.f32()[i])) << "untouched";
}

TEST(Multiply, ToInt8IsTheFloatRowQuantisedWithAnyNumberOfThreads) {
  Fixture f32;
  ASSERT_EQ(f32.op.bind_and_run(), Status::kOk);
  TestTensor expected = i8_tensor("expected", 9, 60, 4);
  for (size_t row = 0; row < 9; ++row) {
    quantize_f32_i8_ref(f32.y.f32(row), 60, 4, 0, expected.i8(row), expected.row_scales(row));
  }
  for (size_t threads : {1, 3}) {
    Fixture s;
    const testing::Team team(threads);
    s.op.outputs = {&s.q};
    s.op.threads = threads;
    s.op.pool = team.pool();
    s.op.reference_only = false;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    EXPECT_EQ(s.op.scratch_bytes(), threads * 256) << "60 floats on whole cache lines, per thread";
    EXPECT_TRUE(testing::same_bits(s.q, expected)) << threads;
  }
}

TEST(Multiply, PassesInfinityAndNanOn) {
  const float inf = std::numeric_limits<float>::infinity();
  const float a[] = {inf, inf, 1}, b[] = {-1, 0, std::nanf("")};
  float y[3];
  multiply_f32_f32_f32_ref(a, b, 3, y);
  EXPECT_EQ(y[0], -inf);
  EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[2]));
}

TEST(Multiply, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"one input", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 1 inputs"},
      {"two outputs", [](Fixture& s) { s.op.outputs.push_back(&s.a); }, "2 outputs"},
      {"ring", [](Fixture& s) { s.b.ring = 1; }, "'b' is F32 in a ring"},
      {"a type", [](Fixture& s) { s.a.type = DataType::kI8; }, "'a' is I8"},
      {"b type", [](Fixture& s) { s.op.inputs[1] = &s.q; }, "'q' is I8"},
      {"layout", [](Fixture& s) { s.b.layout = Layout::kBlock8x4; }, "in blocks"},
      {"width", [](Fixture& s) { s.b.width = 61; }, "expected a width of 60"},
      {"b rows", [](Fixture& s) { s.b.rows = 1; }, "expected equal rows"},
      {"symbol", [](Fixture& s) { s.b.rows_symbol = 0; }, "expected equal rows"},
      {"y rows", [](Fixture& s) { s.y.rows = 1; }, "expected equal rows"},
      {"y width", [](Fixture& s) { s.y.width = 61; }, "expected a width of 60"},
      {"y type", [](Fixture& s) { s.y.type = DataType::kI32; }, "expected F32 or I8"},
      {"y ring", [](Fixture& s) { s.y.ring = 0; }, "in a ring"},
      {"y groups",
       [](Fixture& s) {
         s.op.outputs = {&s.q};
         s.q.scale_groups = 7;
       },
       "divide the width"},
  });
}

}  // namespace
}  // namespace oxbow
