#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/testing/formula.h"
#include "ops/attention/testing/test_case.h"
#include "ops/testing/op_runner.h"
#include "runtime/base/hash.h"
#include "runtime/base/quantize.h"

namespace oxbow {
namespace {

using namespace attention_test;

class AttentionOfType : public ::testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(Keys, AttentionOfType, ::testing::Values(DataType::kF32, DataType::kI8),
                         [](const auto& test) {
                           return test.param == DataType::kF32 ? std::string("F32")
                                                               : std::string("I8");
                         });

TEST_P(AttentionOfType, FollowsTheFormulaForEveryHeadWidth) {
  for (uint32_t head_width : {1, 3, 7, 8, 12, 16, 33, 64, 100}) {
    for (uint32_t distances : {0, 1, 9, 400}) {
      Case c;
      c.type = GetParam();
      c.head_width = head_width;
      c.distances = distances;
      c.rings = {{10, 7, 10}, {90, 50, 80}};
      c.seed = head_width * 1000 + distances;
      expect_formula(c);
    }
  }
}

TEST_P(AttentionOfType, FollowsTheFormulaForRandomShapes) {
  std::mt19937 random(20240611);
  const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  for (int round = 0; round < 150; ++round) {
    Case c;
    c.type = GetParam();
    c.kv_heads = 1 + below(3);
    c.heads = c.kv_heads * (1 + below(3));
    c.head_width = 1 + below(20);
    c.rows = below(20);
    c.max_rows = c.rows + 1 + below(3);
    for (uint32_t r = below(4); r > 0; --r) {
      const uint32_t capacity = 1 + below(r == 1 ? 200 : 40);
      c.rings.push_back({capacity, below(capacity), below(capacity + 1)});
    }
    c.distances = below(2) * (1 + below(250));
    c.q_range = below(2) == 0 ? 1.0f : 20.0f;
    c.seed = 77 + static_cast<uint64_t>(round);
    expect_formula(c);
  }
}

TEST_P(AttentionOfType, SpansOfAnyLengthMeetTileEdges) {
  for (uint32_t count : {62, 63, 64, 65, 127, 128, 129}) {
    Case c;
    c.type = GetParam();
    c.rings = {{150, 149, count}};
    c.distances = 64;
    c.seed = count;
    expect_formula(c);
  }
}

TEST_P(AttentionOfType, EmptyMemoriesAreAsIfTheyWereNotThere) {
  Case with, without;
  with.type = without.type = GetParam();
  with.rings = {{8, 3, 0}, {4, 0, 0}};
  Attention a(with), b(without);
  // Seeds count on with the rings, so the tensors of this run are copied.
  for (auto [to, from] : {std::pair{a.k[2], b.k[0]}, std::pair{a.v[2], b.v[0]}}) {
    std::memcpy(to->data, from->data, from->elements.size());
    if (from->scales != nullptr) std::memcpy(to->scales, from->scales, from->scale_values.size());
  }
  ASSERT_EQ(a.bind_and_run(), Status::kOk) << a.op.message();
  ASSERT_EQ(b.bind_and_run(), Status::kOk) << b.op.message();
  EXPECT_EQ(a.result(), b.result());
}

TEST_P(AttentionOfType, WhereARingBeginsCannotBeToldFromTheBits) {
  for (uint32_t distances : {0, 50}) {
    Case c;
    c.type = GetParam();
    c.heads = 4;
    c.head_width = 12;
    c.distances = distances;
    c.rings = {{9, 0, 9}, {131, 0, 130}};
    Attention at_zero(c);
    ASSERT_EQ(at_zero.bind_and_run(), Status::kOk) << at_zero.op.message();
    for (uint32_t head : {1, 2, 3, 63, 64, 65, 100, 130}) {
      c.rings = {{9, head % 9, 9}, {131, head, 130}};
      Attention moved(c);
      ASSERT_EQ(moved.bind_and_run(), Status::kOk) << moved.op.message();
      EXPECT_EQ(moved.result(), at_zero.result()) << c.text();
    }
  }
}

TEST_P(AttentionOfType, ThreadsDoNotChangeTheBits) {
  for (uint32_t out_groups : {0, 1}) {
    Case c;
    c.type = GetParam();
    c.heads = 3;
    c.kv_heads = 1;
    c.rows = c.max_rows = 77;
    c.rings = {{70, 20, 70}};
    c.distances = 30;
    c.out_groups = out_groups;
    Attention alone(c), team(c);
    ASSERT_EQ(alone.bind_and_run(), Status::kOk) << alone.op.message();
    testing::Buffer memory(ThreadPool::bytes(3));
    Error error;
    ASSERT_EQ(ThreadPool::create(memory.data(), 3, &error, &team.op.pool), Status::kOk)
        << error.text;
    team.op.threads = 3;
    EXPECT_EQ(team.bind_and_run(), Status::kOk) << team.op.message();
    ThreadPool::destroy(team.op.pool);
    EXPECT_EQ(alone.result(), team.result());
  }
}

TEST_P(AttentionOfType, AnInt8OutputIsTheFloatOutputQuantised) {
  for (uint32_t groups : {1, 2, 6}) {
    Case c;
    c.type = GetParam();
    c.heads = 2;
    c.head_width = 9;
    c.rows = 70;  // More than are quantised at a time.
    c.max_rows = 71;
    c.rings = {{5, 2, 4}};
    Attention as_float(c);
    c.out_groups = groups;
    Attention as_int8(c);
    ASSERT_EQ(as_float.bind_and_run(), Status::kOk) << as_float.op.message();
    ASSERT_EQ(as_int8.bind_and_run(), Status::kOk) << as_int8.op.message();
    TestTensor expected = i8_tensor("expected", c.rows, as_float.out->width, groups);
    for (size_t i = 0; i < c.rows; ++i) {
      quantize_row(as_float.out->f32(i), expected.width, groups, expected.i8(i),
                   expected.row_scales(i));
    }
    EXPECT_EQ(0, std::memcmp(expected.data, as_int8.out->data, expected.elements.size()));
    EXPECT_EQ(0, std::memcmp(expected.scales, as_int8.out->scales, expected.scale_values.size()));
  }
}

TEST(AttentionI8, ADiffuseTailOfThousandsOfKeysSurvives) {
  // One key takes most of the weight; the values of the 8,192 others, alike in sign, make up what
  // is left. With int8 weights under one scale for all, each of them would round to zero.
  Case c;
  c.type = DataType::kI8;
  c.heads = c.kv_heads = 1;
  c.head_width = 32;
  c.rows = c.max_rows = 1;
  c.rings = {{8192, 5000, 8192}};
  c.q_range = 0.5f;
  Attention a(c);
  for (size_t d = 0; d < 32; ++d) {
    const bool positive = a.q->f32()[d] > 0;
    a.k[1]->set_code(0, d, positive ? 127 : -127);
    a.v[1]->set_code(0, d, 0);
    for (size_t j = 0; j < 8192; ++j) {
      a.v[0]->set_code(j, d, static_cast<int8_t>(40 + (j * 7 + d) % 88));
    }
  }
  // The weight of the one key is about e^7, a few times less than the tail's 8192 together.
  double content = 0;
  for (size_t d = 0; d < 32; ++d) content += std::abs(a.q->f32()[d]) * a.options.scale;
  a.k[1]->row_scales(0)[0] = static_cast<float>(7.0 / (content * 127.0));
  ASSERT_EQ(a.bind_and_run(), Status::kOk) << a.op.message();
  const Expected expected = expected_row(a, 0, 0, true);
  for (size_t d = 0; d < 32; ++d) {
    EXPECT_GT(expected.values[d], 0.1);
    EXPECT_NEAR(a.out->value(0, d), expected.values[d], expected.tolerance);
    // Rounding goes up as often as down: far inside the worst case.
    EXPECT_NEAR(a.out->value(0, d), expected.values[d], 2e-5 * expected.values[d]);
  }
}

TEST(AttentionI8, IsCloseToAttentionWithFloatQueries) {
  // The error of a query element is uniform within half a step, absmax / 254: for uniform
  // queries 1.1% of their own size at most, 0.4% on average over the square. The scores of this
  // test have a standard deviation near 0.7, so theirs are off by 0.003, and so are the weights
  // relatively.
  Case c;
  c.type = DataType::kI8;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_width = 32;
  c.rows = c.max_rows = 8;
  c.rings = {{64, 9, 50}, {256, 200, 256}};
  c.distances = 200;
  Attention a(c);
  ASSERT_EQ(a.bind_and_run(), Status::kOk) << a.op.message();
  for (size_t i = 0; i < c.rows; ++i) {
    for (size_t head = 0; head < c.heads; ++head) {
      const Expected expected = expected_row(a, i, head, false);
      double ab = 0, aa = 0, bb = 0;
      for (size_t d = 0; d < c.head_width; ++d) {
        const double x = a.out->value(i, head * c.head_width + d), y = expected.values[d];
        ab += x * y;
        aa += x * x;
        bb += y * y;
      }
      EXPECT_GT(ab / std::sqrt(aa * bb), 0.9999) << i << " " << head;
    }
  }
}

TEST(AttentionI8, GivesTheSameBitsOnEveryMachine) {
  // Of int8 output with scales and of float output, relative term and none. A changed number means that
  // saved expectations of users change: only with a new file version.
  const std::pair<Case, uint64_t> cases[] = {
      {{.type = DataType::kI8,
        .heads = 4,
        .kv_heads = 2,
        .head_width = 33,
        .rows = 5,
        .max_rows = 5,
        .rings = {{20, 13, 20}, {150, 77, 140}},
        .distances = 90,
        .out_groups = 1},
       0xa9a95d2034c355d4ull},
      {{.type = DataType::kI8,
        .heads = 2,
        .kv_heads = 2,
        .head_width = 64,
        .rows = 3,
        .max_rows = 3,
        .rings = {{300, 0, 300}},
        .q_range = 9.0f},
       0xdd50a527bdcb7771ull},
  };
  for (const auto& [c, expected] : cases) {
    Attention a(c);
    ASSERT_EQ(a.bind_and_run(), Status::kOk) << a.op.message();
    const std::vector<std::byte> bytes = a.result();
    EXPECT_EQ(hash_bytes(bytes.data(), bytes.size()), expected) << c.text();
  }
}

TEST_P(AttentionOfType, NumbersThatAreNotFiniteDoNoHarm) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float huge = std::numeric_limits<float>::max();
  for (float bad : {nan, inf, -inf, huge, -huge, 1e-45f}) {
    for (int place = 0; place < 7; ++place) {
      Case c;
      c.type = GetParam();
      c.rings = {{70, 30, 70}};
      c.distances = 40;
      for (uint32_t out_groups : {0, 2}) {
        c.out_groups = out_groups;
        Attention a(c);
        TestTensor* t[] = {a.q, a.k[0], a.v[0], a.k[1], a.table, a.bias, a.query_bias};
        float* values = t[place]->type == DataType::kI8 ? t[place]->scales : t[place]->f32();
        values[1] = values[0] = bad;
        if (t[place]->type == DataType::kI8) std::memset(t[place]->data, 0x80, t[place]->stride());
        EXPECT_EQ(a.bind_and_run(), Status::kOk) << a.op.message();
      }
    }
  }
  // All of the memory at once.
  Case c;
  c.type = GetParam();
  c.rings = {{70, 30, 70}};
  Attention a(c);
  std::memset(a.k[0]->data, 0xff, a.k[0]->elements.size());
  std::memset(a.v[0]->data, 0xff, a.v[0]->elements.size());
  if (a.k[0]->scales != nullptr) {
    std::memset(a.k[0]->scales, 0xff, a.k[0]->scale_values.size());
    std::memset(a.v[0]->scales, 0xff, a.v[0]->scale_values.size());
  }
  EXPECT_EQ(a.bind_and_run(), Status::kOk) << a.op.message();
}

}  // namespace
}  // namespace oxbow
