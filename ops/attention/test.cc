#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/test_case.h"
#include "ops/testing/op_runner.h"
#include "runtime/base/hash.h"
#include "runtime/base/quantize.h"

namespace oxbow {
namespace {

using namespace attention_test;

void expect_formula(const Case& c) {
  SCOPED_TRACE(c.text());
  Attention a(c);
  ASSERT_EQ(a.bind_and_run(), Status::kOk) << a.op.message();
  for (size_t i = 0; i < c.rows; ++i) {
    for (size_t head = 0; head < c.heads; ++head) {
      const Expected expected = expected_row(a, i, head, c.type == DataType::kI8);
      for (size_t d = 0; d < c.head_width; ++d) {
        ASSERT_NEAR(a.out->value(i, head * c.head_width + d), expected.values[d],
                    expected.tolerance)
            << "query " << i << " head " << head << " element " << d;
      }
    }
  }
}

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

TEST_P(AttentionOfType, EveryVariantGivesTheBitsOfTheReference) {
  std::mt19937 random(5);
  const auto check = [&]<typename Element>(Element, Isa isa, const char* name,
                                           AttentionKernel<Element> kernel,
                                           AttentionKernel<Element> reference) {
    if (!cpu_supports(isa) && isa != Isa::kNone) return;
    const bool i8 = sizeof(Element) == 1;
    for (uint32_t width : testing::simd_sizes_up_to(130)) {
      for (uint32_t distances : {0, 20}) {
        Case c;
        c.type = i8 ? DataType::kI8 : DataType::kF32;
        c.heads = c.kv_heads = 1;
        c.head_width = width;
        c.rings = {{100, static_cast<uint32_t>(random() % 100), 100}};
        c.distances = distances;
        c.seed = width;
        Attention a(c);
        const size_t stride = i8 ? a.k[0]->stride() : width;
        AttentionShape shape;
        shape.head_width = width;
        shape.scale = 0.3f;
        shape.key_stride = stride;
        shape.key_scale_stride = 1;
        shape.distances = distances;
        shape.table_stride = stride;
        shape.table_scale_stride = 1;
        shape.bias_stride = 1;
        const size_t split = random() % 100;
        KeySpan<Element> spans[2];
        for (size_t s = 0; s < 2; ++s) {
          const size_t row = s * split;
          spans[s].k = reinterpret_cast<const Element*>(a.k[0]->data) + row * stride;
          spans[s].v = reinterpret_cast<const Element*>(a.v[0]->data) + row * stride;
          if (i8) spans[s].k_scales = a.k[0]->scales + row;
          if (i8) spans[s].v_scales = a.v[0]->scales + row;
          spans[s].count = s == 0 ? split : 100 - split;
          spans[s].first_slot = row;
        }
        AttentionQuery<Element> query;
        query.q = a.q->f32();
        query.slot = 100;
        if (distances != 0) {
          query.query_bias = a.query_bias->f32();
          query.table = reinterpret_cast<const Element*>(a.table->data);
          query.table_scales = a.table->scales;
          query.bias = a.bias->f32();
        }
        testing::Buffer scratch(attention_scratch_bytes(width));
        TestTensor got = f32_tensor("got", 1, width), want = f32_tensor("want", 1, width);
        kernel(query, spans, 2, shape, scratch.data(), got.f32());
        reference(query, spans, 2, shape, scratch.data(), want.f32());
        ASSERT_EQ(0, std::memcmp(got.data, want.data, want.elements.size()))
            << name << " " << width;
      }
    }
  };
  const bool i8 = GetParam() == DataType::kI8;
  const auto run = [&]<typename Element>(Element tag, Isa isa, const char* name,
                                         AttentionKernel<Element> kernel) {
    if ((sizeof(Element) == 1) != i8) return;
    if constexpr (sizeof(Element) == 1) {
      check(tag, isa, name, kernel, attention_f32_i8_f32_ref);
    } else {
      check(tag, isa, name, kernel, attention_f32_f32_f32_ref);
    }
  };
#define OXB_KERNEL(element, isa, name) run(element{}, isa, #name, name);
#include "ops/attention/kernels.inc"
#undef OXB_KERNEL
}

TEST_P(AttentionOfType, NoKeysGiveZero) {
  float q = 1.0f, out = 5.0f;
  AttentionShape shape;
  shape.head_width = 1;
  testing::Buffer scratch(attention_scratch_bytes(1));
  if (GetParam() == DataType::kF32) {
    AttentionQuery<float> query;
    query.q = &q;
    attention_f32_f32_f32_ref(query, nullptr, 0, shape, scratch.data(), &out);
  } else {
    AttentionQuery<int8_t> query;
    query.q = &q;
    attention_f32_i8_f32_ref(query, nullptr, 0, shape, scratch.data(), &out);
  }
  EXPECT_EQ(out, 0.0f);
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

TEST_P(AttentionOfType, BindRefusesWhatAFileMustNotHold) {
  using Break = std::function<void(Attention&)>;
  const std::vector<std::pair<const char*, Break>> breaks = {
      {"no heads", [](Attention& a) { a.options.heads = 0; }},
      {"no key heads", [](Attention& a) { a.options.kv_heads = 0; }},
      {"key heads that do not divide", [](Attention& a) { a.options.kv_heads = 3; }},
      {"more key heads than heads", [](Attention& a) { a.options.kv_heads = 8; }},
      {"heads that do not divide the width", [](Attention& a) { a.options.heads = 12; }},
      {"no sources", [](Attention& a) { a.options.sources = 0; }},
      {"too many sources", [](Attention& a) { a.options.sources = 9; }},
      {"sources without inputs", [](Attention& a) { a.options.sources = 4; }},
      {"2^32 sources", [](Attention& a) { a.options.sources = UINT32_MAX; }},
      {"a missing input", [](Attention& a) { a.op.inputs.pop_back(); }},
      {"no output", [](Attention& a) { a.op.outputs.clear(); }},
      {"two outputs", [](Attention& a) { a.op.outputs.push_back(a.out); }},
      {"an unexpected relative term", [](Attention& a) { a.options.relative = false; }},
      {"a scale that is NaN", [](Attention& a) { a.options.scale = std::nanf(""); }},
      {"q of integers", [](Attention& a) { a.q->type = DataType::kI32; }},
      {"q in a ring", [](Attention& a) { a.q->ring = 0; }},
      {"q without a symbol", [](Attention& a) { a.q->rows_symbol = -1; }},
      {"q with too little room", [](Attention& a) { a.q->rows = 1; }},
      {"narrow keys", [](Attention& a) { a.k[0]->width = 8; }},
      {"narrow values", [](Attention& a) { a.v[1]->width = 8; }},
      {"keys of integers", [](Attention& a) { a.k[0]->type = DataType::kI32; }},
      {"keys in blocks", [](Attention& a) { a.k[1]->layout = Layout::kBlock8x4; }},
      {"a memory without a ring", [](Attention& a) { a.k[0]->ring = -1; }},
      {"keys and values in two rings", [](Attention& a) { a.v[0]->ring = 1; }},
      {"a memory smaller than its ring", [](Attention& a) { a.op.ring_capacities[0] = 8; }},
      {"a memory with a symbol", [](Attention& a) { a.v[0]->rows_symbol = 0; }},
      {"own keys in a ring", [](Attention& a) { a.k[2]->ring = 0; }},
      {"own keys of other rows", [](Attention& a) { a.k[2]->rows_symbol = 1; }},
      {"own values with too little room", [](Attention& a) { a.v[2]->rows = 4; }},
      {"a narrow table", [](Attention& a) { a.table->width = 16; }},
      {"a table with a symbol", [](Attention& a) { a.table->rows_symbol = 0; }},
      {"a table in a ring", [](Attention& a) { a.table->ring = 0; }},
      {"a short bias", [](Attention& a) { a.bias->rows = 1; }},
      {"a narrow bias", [](Attention& a) { a.bias->width = 1; }},
      {"a bias of integers", [](Attention& a) { a.bias->type = DataType::kI32; }},
      {"a query bias of two rows", [](Attention& a) { a.query_bias->rows = 2; }},
      {"a narrow query bias", [](Attention& a) { a.query_bias->width = 4; }},
      {"a narrow output", [](Attention& a) { a.out->width = 16; }},
      {"an output of integers", [](Attention& a) { a.out->type = DataType::kI32; }},
      {"an output of other rows", [](Attention& a) { a.out->rows_symbol = 1; }},
      {"an output with too little room", [](Attention& a) { a.out->rows = 4; }},
      {"an output in a ring", [](Attention& a) { a.out->ring = 0; }},
      {"an int8 output without scales",
       [](Attention& a) {
         a.out->type = DataType::kI8;
         a.out->scale_groups = 0;
       }},
      {"an int8 output with scales that do not divide",
       [](Attention& a) {
         a.out->type = DataType::kI8;
         a.out->scale_groups = 5;
       }},
      {"sources of two types",
       [](Attention& a) {
         const bool f32 = a.k[1]->type == DataType::kF32;
         a.k[1]->type = f32 ? DataType::kI8 : DataType::kF32;
         a.k[1]->scale_groups = f32 ? 2 : 0;
       }},
      {"a table of another type",
       [](Attention& a) {
         const bool f32 = a.table->type == DataType::kF32;
         a.table->type = f32 ? DataType::kI8 : DataType::kF32;
         a.table->scale_groups = f32 ? 4 : 0;
       }},
  };
  Case c;
  c.type = GetParam();
  c.heads = 4;
  c.kv_heads = 2;
  c.rings = {{9, 0, 3}, {9, 0, 3}};
  c.distances = 7;
  {
    Attention good(c);
    EXPECT_EQ(good.bind(), Status::kOk) << good.op.message();
  }
  for (const auto& [what, break_it] : breaks) {
    Attention a(c, false);
    a.op.symbols.push_back(1);
    a.op.symbol_maxima.push_back(1);
    break_it(a);
    EXPECT_EQ(a.bind(), Status::kFileCorrupt) << what;
    EXPECT_STRNE(a.op.message(), "") << what;
  }
  if (c.type == DataType::kI8) {
    Attention a(c, false);
    a.k[0]->scale_groups = 1;
    EXPECT_EQ(a.bind(), Status::kFileCorrupt) << "one scale for all heads";
  }
  Attention a(c, false);
  a.op.options(schema::RingPushOptionsT{});
  EXPECT_EQ(a.op.bind(), Status::kFileCorrupt) << "options of another op";
}

}  // namespace
}  // namespace oxbow
