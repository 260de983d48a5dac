// Sources, patterns and terms in all combinations, by the formula and by the bits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/patterns/params.h"
#include "ops/attention/patterns/pattern.h"
#include "ops/attention/testing/formula.h"
#include "ops/attention/testing/test_case.h"
#include "runtime/base/hash.h"

namespace oxbow {
namespace {

using namespace attention_test;
using Kind = schema::PatternKind;

class AttentionTerms : public ::testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(Keys, AttentionTerms, ::testing::Values(DataType::kF32, DataType::kI8),
                         [](const auto& test) {
                           return test.param == DataType::kF32 ? std::string("F32")
                                                               : std::string("I8");
                         });

/// Anything that bind accepts, in small numbers, of the first kinds of patterns.
Case random_case(DataType type, uint32_t seed, Kind last_kind = Kind::Past) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  const auto flip = [&] { return random() % 2 == 0; };
  const auto or_largest = [&](uint32_t value) { return below(20) == 0 ? UINT32_MAX : value; };
  Case c;
  c.type = type;
  c.kv_heads = 1 + below(2);
  c.heads = c.kv_heads * (1 + below(3));
  c.head_width = 1 + below(20);
  c.rows = below(40);
  c.max_rows = c.rows + 1 + below(3);
  c.own = below(4) != 0;
  if (!c.own && flip()) c.other_rows = below(90);
  for (uint32_t r = below(3) + (c.has_plain_source() ? 0 : 1); r > 0; --r) {
    const uint32_t capacity = 1 + below(r == 1 ? 150 : 30);
    const uint32_t pinned = flip() ? 0 : below(capacity);
    const uint32_t count = below(capacity + 1);
    // As long as it is not full up to its pinned rows, a ring stands at its beginning.
    c.rings.push_back({capacity, count > pinned ? below(capacity - pinned) : 0, count, pinned});
  }
  if (below(6) != 0) {
    schema::PatternT p;
    p.kind = schema::EnumValuesPatternKind()[below(static_cast<uint32_t>(last_kind) + 1)];
    p.before = or_largest(below(3) == 0 ? below(100) : below(8));
    p.after = or_largest(below(6));
    p.first = flip() ? 0 : or_largest(below(7));
    p.length = or_largest(1 + below(20));
    p.wrap = c.own && flip();
    p.causal = flip();
    p.dilation.resize(flip() ? 0 : flip() ? 1 : c.heads);
    for (uint32_t& d : p.dilation) d = or_largest(1 + below(4));
    p.summary_sets = 1 + below(2);
    p.summary = static_cast<uint32_t>(random() % (uint64_t{p.length} / p.summary_sets + 1));
    p.image_width = or_largest(1 + below(12));
    p.block_width = or_largest(1 + below(5));
    c.pattern = p;
  }
  if (flip()) {
    c.distances = 1 + below(below(2) == 0 ? 8 : 200);
    c.distance_bias = flip();
    c.relative_zero = flip() ? 0 : below(c.distances);
  }
  c.alibi = below(3) == 0;
  c.segments = c.own && below(3) == 0;
  c.pinned_query = below(3) == 0;
  if (c.has_plain_source()) {
    c.key_mask = below(3) == 0;
    c.globals = below(3) == 0;
    c.mask_queries = c.key_mask && c.own && flip();
    c.mask_keeps_own = c.key_mask && c.own && flip();
  }
  c.q_range = flip() ? 1.0f : 6.0f;
  c.seed = seed;
  return c;
}

TEST_P(AttentionTerms, FollowTheFormulaInEveryCombinationAndVariant) {
  for (uint32_t seed = 1; seed <= 600; ++seed) {
    Case c = random_case(GetParam(), seed);
    if (c.distances != 0 && seed % 3 == 0) {
      c.rooms = static_cast<uint32_t>(std::min(c.rings.size(), RoomsTerm::kMostInputs));
    }
    c.relative_keys = c.distances != 0 && !c.distance_bias && seed % 4 == 1;
    SCOPED_TRACE(c.text());
    Attention reference(c), fastest(c);
    ASSERT_EQ(reference.bind_and_run(), Status::kOk) << reference.op.message();
    ASSERT_NO_FATAL_FAILURE(expect_formula(reference));
    fastest.op.reference_only = false;
    ASSERT_EQ(fastest.bind_and_run(), Status::kOk) << fastest.op.message();
    ASSERT_EQ(reference.result(), fastest.result());
  }
}

/// The same with what a list of terms can say, values of another width, sources of other rows, and the
/// log-sum-exp.
Case extended_case(DataType type, uint32_t seed) {
  Case c = random_case(type, seed);
  std::mt19937 random(seed);
  const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  if (below(3) != 0) c.value_width = 1 + below(40);
  c.log_sums = below(2) == 0;
  c.list_terms = below(2) == 0;
  c.plain_sources = below(static_cast<uint32_t>(c.rings.size()) + 1);
  if (!c.has_plain_source() && c.plain_sources == c.rings.size()) --c.plain_sources;
  for (uint32_t r = 0; r < c.plain_sources; ++r) {
    c.rings[r].count = std::max(c.rings[r].count, 1u);
    c.rings[r].pinned = 0;
  }
  if (below(2) == 0) {
    for (RingCase& ring : c.rings) ring.pinned = 0;
    c.ramp = 1.0f + static_cast<float>(below(30));
    c.span_first = below(2) * below(20);
  }
  return c;
}

TEST_P(AttentionTerms, FollowTheFormulaWithListsOtherWidthsAnySourcesAndLogSums) {
  for (uint32_t seed = 5000; seed < 5400; ++seed) {
    const Case c = extended_case(GetParam(), seed);
    SCOPED_TRACE(c.text());
    Attention reference(c), fastest(c);
    ASSERT_EQ(reference.bind_and_run(), Status::kOk) << reference.op.message();
    ASSERT_NO_FATAL_FAILURE(expect_formula(reference));
    fastest.op.reference_only = false;
    ASSERT_EQ(fastest.bind_and_run(), Status::kOk) << fastest.op.message();
    ASSERT_EQ(reference.result(), fastest.result());
  }
}

TEST_P(AttentionTerms, TheListGivesTheBitsOfTheFlags) {
  for (uint32_t seed = 2000; seed < 2100; ++seed) {
    Case c = random_case(GetParam(), seed);
    if (c.distances != 0) {
      c.rooms = static_cast<uint32_t>(std::min(c.rings.size(), RoomsTerm::kMostInputs));
      c.relative_keys = !c.distance_bias;
    }
    SCOPED_TRACE(c.text());
    Attention flags(c);
    c.list_terms = true;
    Attention list(c);
    ASSERT_EQ(flags.bind_and_run(), Status::kOk) << flags.op.message();
    ASSERT_EQ(list.bind_and_run(), Status::kOk) << list.op.message();
    ASSERT_EQ(flags.result(), list.result());
  }
}

TEST_P(AttentionTerms, AnAdaptiveSpanReadsNoKeysBeyondItsReach) {
  Case c;
  c.type = GetParam();
  c.rings = {{100, 0, 100}};
  c.ramp = 4.0f;
  c.span_first = 3;
  Attention clean(c), dirty(c);
  for (Attention* a : {&clean, &dirty}) testing::fill(*a->spans, {5.5f, 20.0f});
  // The query at 100 sees distances below 24; what is older is not read, but for the first three.
  for (size_t row = 3; row < 77; ++row) {
    for (TestTensor* t : {dirty.k[0], dirty.v[0]}) {
      std::memset(t->data + row * t->stride(), 0xff, t->stride());
      if (t->scales != nullptr) t->row_scales(row)[0] = t->row_scales(row)[1] = std::nanf("");
    }
  }
  ASSERT_EQ(clean.bind_and_run(), Status::kOk) << clean.op.message();
  ASSERT_EQ(dirty.bind_and_run(), Status::kOk) << dirty.op.message();
  EXPECT_EQ(clean.result(), dirty.result());
}

TEST_P(AttentionTerms, SpansThatAreNotFiniteDoNoHarm) {
  const float inf = std::numeric_limits<float>::infinity();
  const float huge = std::numeric_limits<float>::max();
  for (float bad : {std::nanf(""), inf, -inf, huge, -huge, -1.0f, 1e-45f}) {
    Case c;
    c.type = GetParam();
    c.rings = {{70, 30, 70}};
    c.ramp = 1e-30f;
    c.log_sums = true;
    Attention a(c);
    testing::fill(*a.spans, {bad, 3.0f});
    EXPECT_EQ(a.bind_and_run(), Status::kOk) << a.op.message();
  }
}

TEST(AttentionShaders, HaveWhatTheListsSayAndNothingElse) {
  for (unsigned number = 0; number < 256; ++number) {
    PatternParams p;
    p.kind = static_cast<Kind>(number);
    const bool on_cpu = p.kind == Kind::Fixed || p.kind == Kind::Block2D || p.kind > Kind::Past;
    EXPECT_EQ(shader_knows(p), !on_cpu) << number;
    TermList terms;
    terms.count = 1;
    terms.terms[0].kind = static_cast<schema::TermKind>(number);
    bool known = false;
#define OXB_TERM(n, name, type, member) known = known || number == n;
#define OXB_CPU_TERM(n, name, type, member)
#include "ops/attention/terms/terms.inc"
#undef OXB_CPU_TERM
#undef OXB_TERM
    EXPECT_EQ(shader_knows(terms), known) << number;
  }
  const uint32_t two[] = {1, 2};
  PatternParams window;
  window.kind = Kind::Window;
  window.dilation = two;
  window.dilations = 2;
  EXPECT_FALSE(shader_knows(window)) << "dilations of each head";
}

TEST(AttentionI8, TermsAndPatternsGiveTheSameBitsOnEveryMachine) {
  // A changed number means that saved expectations of users change: only with a new file version.
  uint64_t hash = 0;
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    Attention a(random_case(DataType::kI8, seed, Kind::Block2D));
    ASSERT_EQ(a.bind_and_run(), Status::kOk) << a.op.message();
    const std::vector<std::byte> bytes = a.result();
    hash = hash * 31 + hash_bytes(bytes.data(), bytes.size());
  }
  EXPECT_EQ(hash, 0xd6d315f2b54d6488ull);
}

TEST_P(AttentionTerms, ThreadsDoNotChangeTheBits) {
  for (size_t threads : {2, 4}) {
    testing::Buffer memory(ThreadPool::bytes(threads));
    Error error;
    ThreadPool* pool = nullptr;
    ASSERT_EQ(ThreadPool::create(memory.data(), threads, &error, &pool), Status::kOk) << error.text;
    for (uint32_t seed = 1000; seed < 1060; ++seed) {
      Case c = random_case(GetParam(), seed);
      c.out_groups = seed % 2;
      SCOPED_TRACE(c.text());
      Attention alone(c), team(c);
      EXPECT_EQ(alone.bind_and_run(), Status::kOk) << alone.op.message();
      team.op.pool = pool;
      team.op.threads = threads;
      EXPECT_EQ(team.bind_and_run(), Status::kOk) << team.op.message();
      EXPECT_EQ(alone.result(), team.result());
    }
    ThreadPool::destroy(pool);
  }
}

TEST_P(AttentionTerms, WhereARingWithPinnedRowsBeginsCannotBeToldFromTheBits) {
  Case c;
  c.type = GetParam();
  c.pinned_query = true;
  c.alibi = true;
  c.rings = {{101, 0, 100, 4}};
  c.pattern.emplace();
  c.pattern->kind = Kind::Window;
  c.pattern->before = 70;
  c.pattern->first = 4;
  c.pattern->dilation = {1, 2};
  Attention at_zero(c);
  ASSERT_EQ(at_zero.bind_and_run(), Status::kOk) << at_zero.op.message();
  for (uint32_t head : {1, 2, 50, 95, 96}) {
    c.rings[0].head = head;
    Attention moved(c);
    ASSERT_EQ(moved.bind_and_run(), Status::kOk) << moved.op.message();
    EXPECT_EQ(moved.result(), at_zero.result()) << head;
  }
}

TEST_P(AttentionTerms, AWindowGivesTheBitsOfThoseKeysAlone) {
  // The tiles are those of the keys that are seen, wherever they lie.
  Case c;
  c.type = GetParam();
  c.rows = c.max_rows = 1;
  c.rings = {{300, 17, 300}};
  c.pattern.emplace();
  c.pattern->kind = Kind::Window;
  c.pattern->before = 99;
  c.pattern->dilation = {2};
  Attention window(c);
  c.rings = {{99, 0, 99}};
  c.pattern.reset();
  Attention alone(c);
  for (auto [to, from] : {std::pair{alone.k[0], window.k[0]}, std::pair{alone.v[0], window.v[0]}}) {
    for (size_t r = 0; r < 99; ++r) {
      const size_t row = window.place(300 - 2 * (99 - r)).second;
      std::memcpy(to->data + r * to->stride(), from->data + row * to->stride(), to->stride());
      for (size_t g = 0; g < to->scale_groups; ++g) {
        to->row_scales(r)[g] = from->row_scales(row)[g];
      }
    }
  }
  ASSERT_EQ(window.bind_and_run(), Status::kOk) << window.op.message();
  ASSERT_EQ(alone.bind_and_run(), Status::kOk) << alone.op.message();
  EXPECT_EQ(window.result(), alone.result());
}

TEST_P(AttentionTerms, QueriesWithoutKeysGiveZeros) {
  Case c;
  c.type = GetParam();
  c.key_mask = true;
  Attention masked(c);
  std::memset(masked.mask->data, 0, masked.mask->elements.size());
  ASSERT_EQ(masked.bind_and_run(), Status::kOk) << masked.op.message();
  Case empty;
  empty.type = GetParam();
  empty.own = false;
  empty.rings = {{8, 0, 0}};
  Attention nothing(empty);
  ASSERT_EQ(nothing.bind_and_run(), Status::kOk) << nothing.op.message();
  for (const Attention* a : {&masked, &nothing}) {
    for (size_t i = 0; i < c.rows; ++i) {
      for (size_t d = 0; d < a->out->width; ++d) EXPECT_EQ(a->out->value(i, d), 0.0);
    }
  }
}

TEST_P(AttentionTerms, RowsThatAreMaskedMayHoldAnything) {
  Case c;
  c.type = GetParam();
  c.rows = c.max_rows = 20;
  c.key_mask = c.mask_queries = true;
  Attention clean(c), dirty(c);
  for (size_t i = 0; i < c.rows; ++i) {
    if (dirty.mask->i32()[i] != 0) continue;
    for (TestTensor* t : {dirty.k[0], dirty.v[0]}) {
      std::memset(t->data + i * t->stride(), 0xff, t->stride());
      if (t->scales != nullptr) t->row_scales(i)[0] = std::nanf("");
    }
    dirty.q->f32(i)[0] = std::nanf("");
  }
  ASSERT_EQ(clean.bind_and_run(), Status::kOk) << clean.op.message();
  ASSERT_EQ(dirty.bind_and_run(), Status::kOk) << dirty.op.message();
  EXPECT_EQ(clean.result(), dirty.result());
}

TEST_P(AttentionTerms, NumbersThatAreNotFiniteDoNoHarm) {
  const float inf = std::numeric_limits<float>::infinity();
  const float huge = std::numeric_limits<float>::max();
  for (float bad : {std::nanf(""), inf, -inf, huge, -huge, 1e-45f}) {
    for (int place = 0; place < 5; ++place) {
      Case c;
      c.type = GetParam();
      c.rings = {{70, 30, 70, 3}};
      c.distances = 9;
      c.distance_bias = c.alibi = c.segments = c.pinned_query = true;
      c.out_groups = 1;
      Attention a(c);
      TestTensor* t[] = {a.bias, a.slopes, a.segment_table, a.segment_bias, a.pinned_query};
      t[place]->f32()[0] = bad;
      EXPECT_EQ(a.bind_and_run(), Status::kOk) << a.op.message();
    }
  }
}

}  // namespace
}  // namespace oxbow
