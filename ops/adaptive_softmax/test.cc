#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/adaptive_softmax/adaptive_softmax.h"
#include "ops/testing/kernel_test.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

constexpr testing::Variant<AdaptiveSoftmaxKernel> kVariants[] = {
#define OXB_KERNEL(isa, fn) {isa, fn, #fn},
#include "ops/adaptive_softmax/kernels.inc"
#undef OXB_KERNEL
};

std::vector<double> log_softmax(const TestTensor& x, size_t row) {
  double sum = 0;
  for (size_t i = 0; i < x.width; ++i) sum += std::exp(x.value(row, i));
  std::vector<double> y(x.width);
  for (size_t i = 0; i < x.width; ++i) y[i] = x.value(row, i) - std::log(sum);
  return y;
}

// x - max is exact to half a unit of 20, the sum to size / 8 roundings, the logarithm and the last
// difference to two units of at most 30.
double tolerance(size_t size) {
  return 20 * 0x1p-24 + (static_cast<double>(size) / 8.0 + 8) * 0x1p-24 + 4 * 30 * 0x1p-24;
}

TEST(AdaptiveSoftmax, ReferenceFollowsTheFormulaAndEveryVariantTheReference) {
  for (uint32_t size : testing::simd_sizes_up_to(1025)) {
    SCOPED_TRACE(size);
    TestTensor x = f32_tensor("x", 1, size), y = f32_tensor("y", 1, size);
    fill_uniform(x, size, -10, 10);
    adaptive_softmax_f32_f32_ref(x.f32(), size, -2.5f, y.f32());
    const std::vector<double> expected = log_softmax(x, 0);
    for (uint32_t i = 0; i < size; ++i) {
      ASSERT_NEAR(y.f32()[i], expected[i] - 2.5, tolerance(size)) << i;
    }
    testing::for_each_variant(kVariants, [&](AdaptiveSoftmaxKernel kernel) {
      TestTensor z = f32_tensor("z", 1, size);
      kernel(x.f32(), size, -2.5f, z.f32());
      for (uint32_t i = 0; i < size; ++i) ASSERT_EQ(z.f32()[i], y.f32()[i]) << i;
    });
  }
}

/// 20 words in the head, 3 clusters of 7, 1 and 40.
struct Fixture {
  TestTensor head = f32_tensor("head", 5, 23), y = f32_tensor("y", 5, 68);
  TestTensor clusters[3] = {f32_tensor("c0", 5, 7), f32_tensor("c1", 5, 1),
                            f32_tensor("c2", 5, 40)};
  OpRunner op{bind_adaptive_softmax};
  Fixture() {
    fill_uniform(head, 1, -9, 9);
    op.inputs = {&head};
    for (uint64_t i = 0; i < 3; ++i) {
      fill_uniform(clusters[i], 2 + i, -9, 9);
      op.inputs.push_back(&clusters[i]);
    }
    op.outputs = {&y};
    op.symbols = {4};
  }
  void expect_row(size_t row, const float* values) const {
    const std::vector<double> from_head = log_softmax(head, row);
    double total = 0;
    size_t column = 0;
    for (; column < 20; ++column) {
      EXPECT_NEAR(values[column], from_head[column], 1e-5);
      total += std::exp(double{values[column]});
    }
    for (size_t i = 0; i < 3; ++i) {
      for (double expected : log_softmax(clusters[i], row)) {
        EXPECT_NEAR(values[column], expected + from_head[20 + i], 2e-5);
        total += std::exp(double{values[column++]});
      }
    }
    EXPECT_EQ(column, 68u);
    EXPECT_NEAR(total, 1, 2e-5);
  }
};

TEST(AdaptiveSoftmax, SharesTheProbabilityOfEachClusterAmongItsWords) {
  Fixture s;
  for (TestTensor* tensor : s.op.inputs) tensor->rows_symbol = 0;
  s.y.rows_symbol = 0;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t row = 0; row < 4; ++row) s.expect_row(row, s.y.f32(row));
  EXPECT_TRUE(std::isnan(s.y.f32(4)[0])) << "untouched";
}

TEST(AdaptiveSoftmax, WritesToTheCallersMemoryWithAnyNumberOfThreads) {
  testing::Buffer memory(ThreadPool::bytes(3));
  ThreadPool* pool = nullptr;
  ASSERT_EQ(ThreadPool::create(memory.data(), 3, nullptr, &pool), Status::kOk);
  Fixture own, callers;
  ASSERT_EQ(own.op.bind_and_run(), Status::kOk);
  TestTensor caller = f32_tensor("caller", 5, 68);
  callers.op.caller_output = caller.f32();
  callers.op.pool = pool;
  callers.op.threads = 3;
  callers.op.reference_only = false;
  ASSERT_EQ(callers.op.bind_and_run(), Status::kOk) << callers.op.message();
  for (size_t i = 0; i < 5 * 68; ++i) ASSERT_EQ(caller.f32()[i], own.y.f32()[i]);
  EXPECT_TRUE(std::isnan(callers.y.f32()[0])) << "untouched";
  ThreadPool::destroy(pool);
}

TEST(AdaptiveSoftmax, WithoutClustersIsTheLogarithmOfASoftmax) {
  Fixture s;
  s.op.inputs.resize(1);
  TestTensor y = f32_tensor("y", 5, 23);
  s.op.outputs = {&y};
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (size_t row = 0; row < 5; ++row) {
    const std::vector<double> expected = log_softmax(s.head, row);
    for (size_t i = 0; i < 23; ++i) EXPECT_NEAR(y.f32(row)[i], expected[i], 1e-5);
  }
}

TEST(AdaptiveSoftmax, LargeLogitsDoNotOverflowAndMinusInfinityIsImpossible) {
  const float inf = std::numeric_limits<float>::infinity();
  const float x[] = {3e38f, 3e38f, -3e38f, -inf};
  float y[4];
  adaptive_softmax_f32_f32_ref(x, 4, 0.0f, y);
  EXPECT_NEAR(y[0], -std::log(2.0), 1e-7);
  EXPECT_EQ(y[0], y[1]);
  EXPECT_EQ(y[2], -inf);
  EXPECT_EQ(y[3], -inf);
}

TEST(AdaptiveSoftmax, NanSpoilsItsOwnRowOnly) {
  Fixture s;
  s.head.f32(1)[3] = std::nanf("");
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk);
  s.expect_row(0, s.y.f32(0));
  for (size_t i = 0; i < 68; ++i) EXPECT_TRUE(std::isnan(s.y.f32(1)[i]));
  s.expect_row(2, s.y.f32(2));
}

TEST(AdaptiveSoftmax, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no inputs", [](Fixture& s) { s.op.inputs.clear(); }, "has 0 inputs"},
      {"nine clusters", [](Fixture& s) { s.op.inputs.resize(10, &s.clusters[0]); },
       "has 10 inputs"},
      {"outputs", [](Fixture& s) { s.op.outputs.clear(); }, "0 outputs"},
      {"head type", [](Fixture& s) { s.head.type = DataType::kI32; }, "'head' is I32"},
      {"head ring", [](Fixture& s) { s.head.ring = 0; }, "in a ring"},
      {"a head of clusters alone", [](Fixture& s) { s.head.width = 3; }, "besides its 3 clusters"},
      {"a head smaller than its clusters", [](Fixture& s) { s.head.width = 2; }, "besides its 3"},
      {"cluster type", [](Fixture& s) { s.clusters[1].type = DataType::kI32; }, "'c1' is I32"},
      {"cluster ring", [](Fixture& s) { s.clusters[1].ring = 0; }, "in a ring"},
      {"cluster rows", [](Fixture& s) { s.clusters[2].rows_symbol = 0; }, "expected equal rows"},
      {"an empty cluster", [](Fixture& s) { s.clusters[1].width = 0; }, "expected words"},
      {"y type", [](Fixture& s) { s.y.type = DataType::kI32; }, "'y' is I32"},
      {"y rows", [](Fixture& s) { s.y.rows = 4; }, "expected equal rows"},
      {"y width", [](Fixture& s) { s.y.width = 69; }, "expected a width of 68"},
      {"widths that wrap",
       [](Fixture& s) {
         s.clusters[0].width = 0xfffffff8u;
         s.y.width = 53;
       },
       "expected a width of 4294967349"},
  });
}

}  // namespace
}  // namespace oxbow
