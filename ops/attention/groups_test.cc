// Groups and sides: keys that a query sees besides or in place of those of its pattern.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "ops/attention/attention.h"
#include "ops/attention/testing/formula.h"
#include "ops/attention/testing/test_case.h"

namespace oxbow {
namespace {

using namespace attention_test;
using Kind = schema::PatternKind;
using Term = schema::TermKind;

class AttentionGroups : public ::testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(Keys, AttentionGroups, ::testing::Values(DataType::kF32, DataType::kI8),
                         [](const auto& test) {
                           return test.param == DataType::kF32 ? std::string("F32")
                                                               : std::string("I8");
                         });

void expect_in_every_variant(const Case& c) {
  SCOPED_TRACE(c.text());
  Attention reference(c), fastest(c);
  ASSERT_EQ(reference.bind_and_run(), Status::kOk) << reference.op.message();
  ASSERT_NO_FATAL_FAILURE(expect_formula(reference));
  fastest.op.reference_only = false;
  ASSERT_EQ(fastest.bind_and_run(), Status::kOk) << fastest.op.message();
  ASSERT_EQ(reference.result(), fastest.result());
}

Case plain_case(DataType type, std::mt19937& random) {
  Case c;
  c.type = type;
  c.kv_heads = 1 + random() % 2;
  c.heads = c.kv_heads * (1 + random() % 3);
  c.head_width = 1 + random() % 20;
  c.rows = random() % 40;
  c.max_rows = c.rows + 1 + random() % 3;
  c.log_sums = random() % 2 == 0;
  c.seed = random();
  return c;
}

TEST_P(AttentionGroups, AQuerySeesTheKeysOfItsOwnGroup) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    Case c = plain_case(GetParam(), random);
    c.own = random() % 2 == 0;
    if (!c.own) c.other_rows = random() % 90;
    c.group_queries = 1 + random() % 9;
    c.group_keys = c.group_queries * (1 + random() % 3);
    c.group_shape = random() % 2 == 0;
    if (!c.group_shape && random() % 4 == 0) c.group_keys = UINT32_MAX;
    schema::PatternT full;
    full.kind = Kind::Full;
    c.pattern = full;
    ASSERT_NO_FATAL_FAILURE(expect_in_every_variant(c));
  }
}

TEST_P(AttentionGroups, KeysOfOtherGroupsAreNotRead) {
  Case c;
  c.type = GetParam();
  c.own = false;
  c.other_rows = 30;
  c.group_queries = 2;
  c.group_keys = 10;
  Attention clean(c), dirty(c);
  // Three queries: two of the first group, one of the second.
  for (size_t row = 20; row < 30; ++row) {
    for (TestTensor* t : {dirty.k[0], dirty.v[0]}) {
      std::memset(t->data + row * t->stride(), 0xff, t->stride());
      if (t->scales != nullptr) t->row_scales(row)[0] = t->row_scales(row)[1] = std::nanf("");
    }
  }
  ASSERT_EQ(clean.bind_and_run(), Status::kOk) << clean.op.message();
  ASSERT_EQ(dirty.bind_and_run(), Status::kOk) << dirty.op.message();
  EXPECT_EQ(clean.result(), dirty.result());
}

TEST_P(AttentionGroups, ShapesThatAreNoLengthsAreRefused) {
  for (const auto& [two, three] :
       {std::pair{0, 3}, {2, 0}, {-1, 3}, {2, -3}, {INT32_MAX, INT32_MAX}}) {
    Case c;
    c.type = GetParam();
    c.group_queries = 2;
    c.group_keys = 4;
    c.group_shape = true;
    Attention a(c);
    a.group_shape->i32()[1] = two;
    a.group_shape->i32()[2] = three;
    EXPECT_EQ(a.bind_and_run(), Status::kInvalidArgument) << two << " " << three;
  }
}

TEST_P(AttentionGroups, SidesAreSeenByAllWithABiasByBlocks) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    Case c = plain_case(GetParam(), random);
    const auto sides = static_cast<uint32_t>(1 + random() % 90);
    c.rings = {{sides, 0, sides}};
    c.plain_sources = 1;
    c.side_length = 1 + random() % 6;
    c.side_distances = 1 + random() % 12;
    c.side_zero = random() % c.side_distances;
    c.distance_bias = random() % 2 == 0;
    if (c.distance_bias) c.distances = 1 + random() % 9;
    if (c.distance_bias) c.relative_zero = random() % c.distances;
    c.key_mask = random() % 2 == 0;
    schema::PatternT window;
    window.kind = Kind::Window;
    window.before = random() % 5;
    window.after = random() % 5;
    if (random() % 3 != 0) c.pattern = window;
    ASSERT_NO_FATAL_FAILURE(expect_in_every_variant(c));
  }
}

TEST_P(AttentionGroups, RefusesTermsThatDoNotFit) {
  Case groups;
  groups.type = GetParam();
  groups.group_queries = 2;
  groups.group_keys = 4;
  groups.group_shape = true;
  const auto expect_refusal = [](const Case& c, const char* what, auto change) {
    Attention a(c);
    change(a);
    EXPECT_EQ(a.bind(), Status::kFileCorrupt) << what;
  };
  expect_refusal(groups, "two lengths", [](Attention& a) { a.options.terms[0]->key_length = 3; });
  expect_refusal(groups, "no length", [](Attention& a) { a.options.terms[0]->key_dimensions = 0; });
  expect_refusal(groups, "a shape that nobody asks for", [](Attention& a) {
    a.options.terms[0]->key_dimensions = a.options.terms[0]->query_dimensions = 0;
    a.options.terms[0]->key_length = a.options.terms[0]->query_length = 1;
  });
  expect_refusal(groups, "no shape", [](Attention& a) {
    a.options.terms[0]->inputs = 0;
    a.op.inputs.pop_back();
  });
  expect_refusal(groups, "a shape of floats",
                 [](Attention& a) { a.group_shape->type = DataType::kF32; });
  groups.key_mask = true;
  expect_refusal(groups, "a mask beside", [](Attention&) {});

  Case sides;
  sides.type = GetParam();
  sides.rings = {{5, 0, 5}};
  sides.plain_sources = 1;
  sides.side_length = 2;
  sides.side_distances = 4;
  expect_refusal(sides, "no length", [](Attention& a) { a.options.terms[0]->length = 0; });
  expect_refusal(sides, "zero", [](Attention& a) { a.options.terms[0]->zero = 4; });
  expect_refusal(sides, "width", [](Attention& a) { a.side_bias->width = 1; });
  expect_refusal(sides, "integers", [](Attention& a) { a.side_bias->type = DataType::kI32; });
  Case ring = sides;
  ring.plain_sources = 0;
  expect_refusal(ring, "sides in a ring", [](Attention&) {});
  Case alone = sides;
  alone.rings.clear();
  expect_refusal(alone, "one source", [](Attention&) {});
  Case alibi = sides;
  alibi.alibi = true;
  expect_refusal(alibi, "slopes beside", [](Attention&) {});
  static_assert(Term::MAX >= Term::Sides);
}

}  // namespace
}  // namespace oxbow
