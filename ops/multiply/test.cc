#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/multiply/multiply.h"
#include "ops/testing/kernel_test.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::TestTensor;

constexpr testing::Variant<MultiplyKernel> kVariants[] = {
#define OXB_KERNEL(isa, fn) {isa, fn, #fn},
#include "ops/multiply/kernels.inc"
#undef OXB_KERNEL
};

TEST(Multiply, EveryVariantMultipliesExactlyAlsoInPlace) {
  testing::for_each_variant(kVariants, [&](MultiplyKernel kernel) {
    for (uint32_t size : testing::simd_sizes_up_to(130)) {
      TestTensor a = f32_tensor("a", 1, size), b = f32_tensor("b", 1, size);
      TestTensor y = f32_tensor("y", 1, size);
      fill_uniform(a, size);
      fill_uniform(b, size + 1000, -1e3f, 1e3f);
      kernel(a.f32(), b.f32(), size, y.f32());
      // A product of two floats is exact in double, and rounded once.
      for (uint32_t i = 0; i < size; ++i) {
        ASSERT_EQ(y.f32()[i], static_cast<float>(a.value(0, i) * b.value(0, i)));
      }
      kernel(a.f32(), b.f32(), size, b.f32());
      for (uint32_t i = 0; i < size; ++i) ASSERT_EQ(b.f32()[i], y.f32()[i]) << "in place";
    }
  });
}

struct Fixture : testing::RowOpFixture {
  TestTensor b = f32_tensor("b", 9, 60);
  Fixture() : RowOpFixture(bind_multiply, 9, 60, 4) {
    fill_uniform(b, 2);
    op.inputs = {&x, &b};
  }
};

TEST(Multiply, RunsOverTheActualRowsOnly) {
  Fixture s;
  testing::expect_only_actual_rows(s.op);
  EXPECT_EQ(s.op.scratch_bytes(), 0u);
  for (size_t i = 0; i < 480; ++i) ASSERT_EQ(s.y.f32()[i], s.x.f32()[i] * s.b.f32()[i]);
}

TEST(Multiply, ToInt8IsTheFloatRowQuantisedWithAnyNumberOfThreads) {
  testing::expect_int8_is_float_quantised<Fixture>();
}

TEST(Multiply, ARowServesAllRowsAndAColumnItsNeighbours) {
  for (const uint32_t rows : {1u, 9u}) {
    for (const uint32_t width : {1u, 4u, 60u}) {
      Fixture s;
      s.b.rows = rows;
      s.b.width = width;
      ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
      for (size_t row = 0; row < 9; ++row) {
        for (size_t i = 0; i < 60; ++i) {
          const float b = s.b.f32(rows == 1 ? 0 : row)[i / (60 / width)];
          ASSERT_EQ(s.y.f32(row)[i], s.x.f32(row)[i] * b) << row << " " << i;
        }
      }
    }
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
  testing::expect_output_refusals<Fixture>();
  testing::expect_refusals<Fixture>({
      {"one input", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 1 inputs"},
      {"two outputs", [](Fixture& s) { s.op.outputs.push_back(&s.x); }, "2 outputs"},
      {"ring", [](Fixture& s) { s.b.ring = 1; }, "'b' is F32 in a ring"},
      {"x type", [](Fixture& s) { s.x.type = DataType::kI8; }, "'x' is I8"},
      {"b type", [](Fixture& s) { s.op.inputs[1] = &s.q; }, "'q' is I8"},
      {"layout", [](Fixture& s) { s.b.layout = Layout::kBlock8x4; }, "in blocks"},
      {"width", [](Fixture& s) { s.b.width = 61; }, "expected a width of 60"},
      {"no divisor", [](Fixture& s) { s.b.width = 7; }, "expected a width of 60"},
      {"no width", [](Fixture& s) { s.b.width = 0; }, "expected a width of 60"},
      {"b rows", [](Fixture& s) { s.b.rows = 2; }, "expected equal rows"},
      {"symbol", [](Fixture& s) { s.b.rows_symbol = 0; }, "expected equal rows"},
  });
}

}  // namespace
}  // namespace oxbow
