#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/gru_gate/generic.h"
#include "ops/gru_gate/gru_gate.h"
#include "ops/testing/kernel_test.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

constexpr testing::Variant<GruGateKernel> kVariants[] = {
#define OXB_KERNEL(isa, fn) {isa, fn, #fn},
#include "ops/gru_gate/kernels.inc"
#undef OXB_KERNEL
};

double formula(const TestTensor& gi, const TestTensor& gh, const TestTensor& x, size_t row,
               size_t i) {
  const size_t width = x.width;
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double r = sigmoid(gi.value(row, i) + gh.value(row, i));
  const double z = sigmoid(gi.value(row, width + i) + gh.value(row, width + i));
  const double n = std::tanh(gi.value(row, 2 * width + i) + r * gh.value(row, 2 * width + i));
  return (1 - z) * n + z * x.value(row, i);
}

TEST(GruGate, ReferenceFollowsTheFormulaAndEveryVariantTheReferenceAlsoInPlace) {
  for (uint32_t size : testing::simd_sizes_up_to(257)) {
    SCOPED_TRACE(size);
    TestTensor gi = f32_tensor("gi", 1, 3 * size), gh = f32_tensor("gh", 1, 3 * size);
    TestTensor x = f32_tensor("x", 1, size), y = f32_tensor("y", 1, size);
    fill_uniform(gi, size, -6, 6);
    fill_uniform(gh, size + 1, -6, 6);
    fill_uniform(x, size + 2);
    gru_gate_f32_f32_f32_f32_ref(gi.f32(), gh.f32(), x.f32(), size, y.f32());
    // The argument of tanh is off by 6 times the error of r, 2e-7, and two roundings of up to 12;
    // the rest is below 1 and adds a few 1e-7.
    for (uint32_t i = 0; i < size; ++i) {
      ASSERT_NEAR(y.f32()[i], formula(gi, gh, x, 0, i), 4e-6) << i;
    }
    testing::for_each_variant(kVariants, [&](GruGateKernel kernel) {
      TestTensor z = f32_tensor("z", 1, size);
      kernel(gi.f32(), gh.f32(), x.f32(), size, z.f32());
      for (uint32_t i = 0; i < size; ++i) ASSERT_EQ(z.f32()[i], y.f32()[i]) << i;
      for (uint32_t i = 0; i < size; ++i) z.f32()[i] = x.f32()[i];
      kernel(gi.f32(), gh.f32(), z.f32(), size, z.f32());
      for (uint32_t i = 0; i < size; ++i) ASSERT_EQ(z.f32()[i], y.f32()[i]) << i << " in place";
    });
  }
}

struct Fixture {
  TestTensor gi = f32_tensor("gi", 5, 30), gh = f32_tensor("gh", 5, 30);
  TestTensor x = f32_tensor("x", 5, 10), y = f32_tensor("y", 5, 10);
  OpRunner op{bind_gru_gate};
  Fixture() {
    fill_uniform(gi, 1);
    fill_uniform(gh, 2);
    fill_uniform(x, 3);
    op.inputs = {&gi, &gh, &x};
    op.outputs = {&y};
    op.symbols = {4};
  }
};

TEST(GruGate, RunsOverTheActualRowsOnlyWithAnyNumberOfThreads) {
  testing::Buffer memory(ThreadPool::bytes(3));
  ThreadPool* pool = nullptr;
  ASSERT_EQ(ThreadPool::create(memory.data(), 3, nullptr, &pool), Status::kOk);
  Fixture one, three;
  three.op.pool = pool;
  three.op.threads = 3;
  for (Fixture* s : {&one, &three}) {
    for (TestTensor* tensor : {&s->gi, &s->gh, &s->x, &s->y}) tensor->rows_symbol = 0;
    ASSERT_EQ(s->op.bind_and_run(), Status::kOk) << s->op.message();
    EXPECT_TRUE(std::isnan(s->y.f32(4)[0])) << "untouched";
  }
  for (size_t row = 0; row < 4; ++row) {
    for (size_t i = 0; i < 10; ++i) {
      EXPECT_NEAR(one.y.f32(row)[i], formula(one.gi, one.gh, one.x, row, i), 1e-6);
      EXPECT_EQ(one.y.f32(row)[i], three.y.f32(row)[i]);
    }
  }
  ThreadPool::destroy(pool);
}

TEST(GruGate, InfiniteGatesCloseOrOpenAndNanSpoilsItsOwnElement) {
  Fixture s;
  const float inf = std::numeric_limits<float>::infinity();
  s.gi.f32()[10] = inf;  // z = 1: the old state
  s.gi.f32()[11] = -inf;
  s.gi.f32()[21] = inf;  // z = 0, n = 1
  s.gi.f32()[22] = std::nanf("");
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  EXPECT_EQ(s.y.f32()[0], s.x.f32()[0]);
  EXPECT_EQ(s.y.f32()[1], 1.0f);
  EXPECT_TRUE(std::isnan(s.y.f32()[2]));
  EXPECT_TRUE(std::isfinite(s.y.f32()[3]));
}

TEST(GruGate, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"inputs", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 2 inputs"},
      {"outputs", [](Fixture& s) { s.op.outputs.clear(); }, "0 outputs"},
      {"gi type", [](Fixture& s) { s.gi.type = DataType::kI32; }, "'gi' is I32"},
      {"gh ring", [](Fixture& s) { s.gh.ring = 0; }, "in a ring"},
      {"x type", [](Fixture& s) { s.x.type = DataType::kI8; }, "'x' is I8"},
      {"gi width", [](Fixture& s) { s.gi.width = 29; }, "expected a width of 30"},
      {"gh width", [](Fixture& s) { s.gh.width = 10; }, "expected a width of 30"},
      {"widths that wrap",
       [](Fixture& s) {
         s.x.width = s.y.width = 0x55555556u;
         s.gi.width = s.gh.width = 2;
       },
       "expected a width of 4294967298"},
      {"y width", [](Fixture& s) { s.y.width = 11; }, "expected a width of 10"},
      {"rows", [](Fixture& s) { s.gh.rows_symbol = 0; }, "expected equal rows"},
      {"y rows", [](Fixture& s) { s.y.rows = 4; }, "expected equal rows"},
  });
}

}  // namespace
}  // namespace oxbow
