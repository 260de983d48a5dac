#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/add/add.h"
#include "ops/testing/kernel_test.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

constexpr testing::Variant<AddKernel> kVariants[] = {
#define OXB_KERNEL(isa, fn) {isa, fn, #fn},
#include "ops/add/kernels.inc"
#undef OXB_KERNEL
};

TEST(Add, EveryVariantAddsExactlyAlsoInPlace) {
  testing::for_each_variant(kVariants, [&](AddKernel kernel) {
    for (uint32_t size : testing::simd_sizes_up_to(130)) {
      TestTensor a = f32_tensor("a", 1, size), b = f32_tensor("b", 1, size);
      TestTensor y = f32_tensor("y", 1, size);
      fill_uniform(a, size);
      fill_uniform(b, size + 1000, -1e3f, 1e3f);
      kernel(a.f32(), b.f32(), size, y.f32());
      // A sum of two floats in double, rounded once, is the float sum.
      for (uint32_t i = 0; i < size; ++i) {
        ASSERT_EQ(y.f32()[i], static_cast<float>(a.value(0, i) + b.value(0, i)));
      }
      kernel(a.f32(), b.f32(), size, b.f32());
      for (uint32_t i = 0; i < size; ++i) ASSERT_EQ(b.f32()[i], y.f32()[i]) << "in place";
    }
  });
}

struct Fixture {
  TestTensor a = f32_tensor("a", 90, 100), b = f32_tensor("b", 90, 100);
  TestTensor y = f32_tensor("y", 90, 100);
  OpRunner op{bind_add};
  Fixture() {
    op.inputs = {&a, &b};
    op.outputs = {&y};
    op.symbols = {89};
  }
};

TEST(Add, ARowServesAllRowsAndAColumnItsNeighbours) {
  for (const uint32_t rows : {1u, 90u}) {
    for (const uint32_t width : {1u, 4u, 100u}) {
      Fixture s;
      fill_uniform(s.a, 1);
      fill_uniform(s.b, 2);
      s.b.rows = rows;
      s.b.width = width;
      ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
      for (size_t row = 0; row < 90; ++row) {
        for (size_t i = 0; i < 100; ++i) {
          const float b = s.b.f32(rows == 1 ? 0 : row)[i / (100 / width)];
          ASSERT_EQ(s.y.f32(row)[i], s.a.f32(row)[i] + b) << row << " " << i;
        }
      }
    }
  }
}

TEST(Add, RunsOverTheActualRowsOnly) {
  Fixture s;
  fill_uniform(s.a, 1);
  fill_uniform(s.b, 2);
  testing::expect_only_actual_rows(s.op);
  for (size_t i = 0; i < 8900; ++i) ASSERT_EQ(s.y.f32()[i], s.a.f32()[i] + s.b.f32()[i]);
}

TEST(Add, AFewRowsAreAddedAsWell) {
  testing::TestTensor a = testing::f32_tensor("a", 5, 24), b = testing::f32_tensor("b", 5, 24);
  testing::TestTensor y = testing::f32_tensor("y", 5, 24);
  fill_uniform(a, 1);
  fill_uniform(b, 2);
  testing::OpRunner op(bind_add);
  op.inputs = {&a, &b};
  op.outputs = {&y};
  ASSERT_EQ(op.bind_and_run(), Status::kOk) << op.message();
  for (size_t i = 0; i < 120; ++i) ASSERT_EQ(y.f32()[i], a.f32()[i] + b.f32()[i]);
}

TEST(Add, PassesInfinityAndNanOn) {
  const float inf = std::numeric_limits<float>::infinity();
  const float a[] = {inf, inf, 1}, b[] = {1, -inf, std::nanf("")};
  float y[3];
  add_f32_f32_f32_ref(a, b, 3, y);
  EXPECT_EQ(y[0], inf);
  EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[2]));
}

TEST(Add, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"one input", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 1 inputs"},
      {"two outputs", [](Fixture& s) { s.op.outputs.push_back(&s.a); }, "2 outputs"},
      {"ring", [](Fixture& s) { s.b.ring = 1; }, "'b' is F32 in a ring"},
      {"type", [](Fixture& s) { s.a.type = DataType::kI8; }, "'a' is I8"},
      {"layout", [](Fixture& s) { s.b.layout = Layout::kBlock8x4; }, "in blocks"},
      {"width", [](Fixture& s) { s.b.width = 101; }, "expected a width of 100"},
      {"rows", [](Fixture& s) { s.y.rows = 1; }, "expected equal rows"},
      {"symbol", [](Fixture& s) { s.b.rows_symbol = 0; }, "expected equal rows"},
  });
}

}  // namespace
}  // namespace oxbow
