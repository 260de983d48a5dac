// What bind must refuse: model files are written by anyone.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/testing/test_case.h"

namespace oxbow {
namespace {

using namespace attention_test;
using Kind = schema::PatternKind;
using Break = std::function<void(Attention&)>;
using Breaks = std::vector<std::pair<const char*, Break>>;

class AttentionBind : public ::testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(Keys, AttentionBind, ::testing::Values(DataType::kF32, DataType::kI8),
                         [](const auto& test) {
                           return test.param == DataType::kF32 ? std::string("F32")
                                                               : std::string("I8");
                         });

/// The case is accepted as it is and refused after each of the changes.
void expect_refusals(const Case& c, const Breaks& breaks) {
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
}

TEST_P(AttentionBind, RefusesWhatAFileMustNotHold) {
  const Breaks breaks = {
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
      {"a second output that is no log-sum-exp",
       [](Attention& a) { a.op.outputs.push_back(a.out); }},
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
  expect_refusals(c, breaks);
  if (c.type == DataType::kI8) {
    Attention a(c, false);
    a.k[0]->scale_groups = 1;
    EXPECT_EQ(a.bind(), Status::kFileCorrupt) << "one scale for all heads";
  }
  Attention a(c, false);
  a.op.options(schema::RingPushOptionsT{});
  EXPECT_EQ(a.op.bind(), Status::kFileCorrupt) << "options of another op";
}

TEST_P(AttentionBind, RefusesTermsThatDoNotFit) {
  const Breaks breaks = {
      {"a missing flag", [](Attention& a) { a.options.alibi = false; }},
      {"a further flag", [](Attention& a) { a.options.relative = true; }},
      {"relative and distance bias",
       [](Attention& a) {
         // Three inputs for three.
         a.options.relative = true;
         a.options.segments = false;
       }},
      {"a zero beyond the table", [](Attention& a) { a.options.relative_zero = 7; }},
      {"a zero far beyond", [](Attention& a) { a.options.relative_zero = UINT32_MAX; }},
      {"a narrow bias", [](Attention& a) { a.bias->width = 1; }},
      {"a bias with a symbol", [](Attention& a) { a.bias->rows_symbol = 0; }},
      {"slopes of two rows", [](Attention& a) { a.slopes->rows = 2; }},
      {"too few slopes", [](Attention& a) { a.slopes->width = 3; }},
      {"slopes of integers", [](Attention& a) { a.slopes->type = DataType::kI32; }},
      {"types of floats", [](Attention& a) { a.types->type = DataType::kF32; }},
      {"types of other rows", [](Attention& a) { a.types->rows_symbol = 1; }},
      {"types with too little room", [](Attention& a) { a.types->rows = 1; }},
      {"types in a ring", [](Attention& a) { a.types->ring = 0; }},
      {"a segment table of one row", [](Attention& a) { a.segment_table->rows = 1; }},
      {"a narrow segment table", [](Attention& a) { a.segment_table->width = 8; }},
      {"a segment bias of two rows", [](Attention& a) { a.segment_bias->rows = 2; }},
      {"a wide mask", [](Attention& a) { a.mask->width = 2; }},
      {"a mask of floats", [](Attention& a) { a.mask->type = DataType::kF32; }},
      {"a mask of other rows", [](Attention& a) { a.mask->rows_symbol = 1; }},
      {"flags with too little room", [](Attention& a) { a.globals->rows = 2; }},
      {"flags of bytes", [](Attention& a) { a.globals->type = DataType::kI8; }},
      {"a narrow pinned query", [](Attention& a) { a.pinned_query->width = 8; }},
      {"a pinned query of other rows", [](Attention& a) { a.pinned_query->rows_symbol = 1; }},
      {"a pinned query of integers", [](Attention& a) { a.pinned_query->type = DataType::kI32; }},
      {"own rows in a ring", [](Attention& a) { a.k[1]->ring = a.v[1]->ring = 0; }},
      {"segments without own rows", [](Attention& a) { a.options.own = false; }},
      {"queries masked without a mask",
       [](Attention& a) {
         a.options.key_mask = false;
         a.op.inputs.erase(a.op.inputs.end() - 3);
       }},
      {"a ring with nothing but pinned rows",
       [](Attention& a) { a.k[0]->pinned = a.v[0]->pinned = a.k[0]->rows; }},
      {"values with other pinned rows", [](Attention& a) { a.v[0]->pinned = 1; }},
  };
  Case c;
  c.type = GetParam();
  c.heads = 4;
  c.kv_heads = 2;
  c.rings = {{9, 0, 3, 2}};
  c.distances = 7;
  c.relative_zero = 6;
  c.distance_bias = c.alibi = c.segments = c.pinned_query = true;
  c.key_mask = c.mask_queries = c.mask_keeps_own = c.globals = true;
  expect_refusals(c, breaks);
}

TEST_P(AttentionBind, RefusesRoomsThatDoNotFit) {
  const Breaks breaks = {
      {"room of a tensor without a ring", [](Attention& a) { a.op.inputs.back() = a.q; }},
      {"a room too few", [](Attention& a) { a.op.inputs.pop_back(); }},
      {"2^32 rooms", [](Attention& a) { a.options.rooms = UINT32_MAX; }},
      {"too many rooms",
       [](Attention& a) {
         a.options.rooms = 3;
         a.op.inputs.insert(a.op.inputs.end(), 2, a.k[0]);
       }},
      {"room without a table",
       [](Attention& a) {
         a.options.relative = false;
         a.op.inputs.erase(a.op.inputs.end() - 4, a.op.inputs.end() - 1);
       }},
  };
  Case c;
  c.type = GetParam();
  c.rings = {{9, 0, 3}};
  c.distances = 7;
  c.rooms = 1;
  expect_refusals(c, breaks);
}

TEST_P(AttentionBind, RefusesListsOfTermsThatDoNotFit) {
  using Term = schema::TermKind;
  const Breaks breaks = {
      {"an unknown term",
       [](Attention& a) {
         a.options.terms[0]->kind = static_cast<Term>(static_cast<int>(Term::MAX) + 1);
       }},
      {"the last number", [](Attention& a) { a.options.terms[0]->kind = static_cast<Term>(255); }},
      {"a further term without inputs", [](Attention& a) { a.add_term(Term::RelativeKeys, 0); }},
      {"a further term with an input", [](Attention& a) { a.add_term(Term::Globals, 1); }},
      {"a term twice",
       [](Attention& a) {
         a.add_term(Term::AdaptiveSpan, 1);
         a.op.inputs.push_back(a.spans);
       }},
      {"a term as flag and in the list",
       [](Attention& a) {
         a.add_term(Term::Alibi, 1);
         a.op.inputs.push_back(a.slopes);
       }},
      {"a thousand terms",
       [](Attention& a) {
         for (int i = 0; i < 1000; ++i) a.add_term(Term::RelativeKeys, 0);
       }},
      {"no inputs", [](Attention& a) { a.options.terms[0]->inputs = 0; }},
      {"too many inputs",
       [](Attention& a) {
         a.options.terms[0]->inputs = 2;
         a.op.inputs.push_back(a.spans);
       }},
      {"2^32 inputs", [](Attention& a) { a.options.terms[0]->inputs = UINT32_MAX; }},
      {"spans of two rows", [](Attention& a) { a.spans->rows = 2; }},
      {"too few spans", [](Attention& a) { a.spans->width = 1; }},
      {"spans of integers", [](Attention& a) { a.spans->type = DataType::kI32; }},
      {"no ramp", [](Attention& a) { a.options.terms[0]->ramp = 0.0f; }},
      {"a negative ramp", [](Attention& a) { a.options.terms[0]->ramp = -1.0f; }},
      {"a ramp that is NaN", [](Attention& a) { a.options.terms[0]->ramp = std::nanf(""); }},
      {"an endless ramp", [](Attention& a) { a.options.terms[0]->ramp = INFINITY; }},
      {"pinned rows", [](Attention& a) { a.k[0]->pinned = a.v[0]->pinned = 1; }},
  };
  Case c;
  c.type = GetParam();
  c.rings = {{9, 0, 3}};
  c.alibi = true;
  c.ramp = 2.0f;
  expect_refusals(c, breaks);
}

TEST_P(AttentionBind, RefusesOutputsAndValuesThatDoNotFit) {
  const Breaks breaks = {
      {"values of two widths", [](Attention& a) { a.v[1]->width = 8; }},
      {"values that are no heads", [](Attention& a) { a.v[0]->width = a.v[1]->width = 13; }},
      {"no values", [](Attention& a) { a.v[0]->width = a.v[1]->width = 0; }},
      {"an output as wide as q", [](Attention& a) { a.out->width = a.q->width; }},
      {"three outputs", [](Attention& a) { a.op.outputs.push_back(a.log_sums); }},
      {"a narrow log-sum-exp", [](Attention& a) { a.log_sums->width = 1; }},
      {"a log-sum-exp of integers", [](Attention& a) { a.log_sums->type = DataType::kI32; }},
      {"a log-sum-exp of other rows", [](Attention& a) { a.log_sums->rows_symbol = 1; }},
      {"a log-sum-exp in a ring", [](Attention& a) { a.log_sums->ring = 0; }},
      {"a log-sum-exp with too little room", [](Attention& a) { a.log_sums->rows = 2; }},
  };
  Case c;
  c.type = GetParam();
  c.value_width = 6;
  c.log_sums = true;
  c.rings = {{9, 0, 3}};
  expect_refusals(c, breaks);
}

TEST_P(AttentionBind, RefusesOtherRowsThatDoNotFit) {
  const Breaks breaks = {
      {"values of other rows", [](Attention& a) { a.v[1]->rows_symbol = 0; }},
      {"keys with too little room", [](Attention& a) { a.k[1]->rows = 4; }},
      {"values with too little room", [](Attention& a) { a.v[1]->rows = 4; }},
      {"fixed rows of two numbers",
       [](Attention& a) {
         a.k[1]->rows_symbol = a.v[1]->rows_symbol = a.mask->rows_symbol = -1;
         a.v[1]->rows = 4;
       }},
      {"a mask of the queries", [](Attention& a) { a.mask->rows_symbol = 0; }},
      {"masked queries", [](Attention& a) { a.options.mask_queries = true; }},
      {"kept own rows", [](Attention& a) { a.options.mask_keeps_own = true; }},
      {"wrapped chunks",
       [](Attention& a) {
         a.options.pattern = std::make_unique<schema::PatternT>();
         a.options.pattern->kind = Kind::Chunked;
         a.options.pattern->length = 4;
         a.options.pattern->wrap = true;
       }},
      {"a mask of a ring",
       [](Attention& a) {
         a.options.sources = 1;
         a.op.inputs.erase(a.op.inputs.begin() + 3, a.op.inputs.begin() + 5);
       }},
      {"a first source of two numbers of rows",
       [](Attention& a) {
         a.k[0]->ring = a.v[0]->ring = -1;
         a.v[0]->rows = 8;
       }},
      {"values in a ring", [](Attention& a) { a.v[1]->ring = 0; }},
      {"keys in a ring", [](Attention& a) { a.k[1]->ring = 0; }},
  };
  Case c;
  c.type = GetParam();
  c.own = false;
  c.other_rows = 11;
  c.rings = {{9, 0, 3}};
  c.key_mask = true;
  expect_refusals(c, breaks);
}

TEST_P(AttentionBind, RefusesPatternsThatMakeNoSense) {
  const auto pattern = [](Kind kind, void (*change)(schema::PatternT&)) {
    return [kind, change](Attention& a) {
      a.options.pattern->kind = kind;
      change(*a.options.pattern);
    };
  };
  const auto no_length = [](schema::PatternT& p) { p.length = 0; };
  const Breaks breaks = {
      {"an unknown kind",
       pattern(static_cast<Kind>(static_cast<int>(Kind::MAX) + 1), [](schema::PatternT&) {})},
      {"listed blocks of nothing", pattern(Kind::ListedBlocks, no_length)},
      {"segments of nothing", pattern(Kind::Segments, no_length)},
      {"a circle of nothing", pattern(Kind::Circle, no_length)},
      {"segments with a dilation of 0",
       pattern(Kind::Segments, [](schema::PatternT& p) { p.dilation = {0}; })},
      {"segments with two dilations", pattern(Kind::Segments,
                                              [](schema::PatternT& p) {
                                                p.dilation = {1, 2};
                                              })},
      {"a circle of no rounds", pattern(Kind::Circle, [](schema::PatternT& p) { p.rounds = 0; })},
      {"a circle of too many chunks",
       pattern(Kind::Circle, [](schema::PatternT& p) { p.before = 1025; })},
      {"chunks of nothing", pattern(Kind::Chunked, no_length)},
      {"strides of nothing", pattern(Kind::Strided, no_length)},
      {"groups of nothing", pattern(Kind::Fixed, no_length)},
      {"blocks of nothing", pattern(Kind::Block1D, no_length)},
      {"blocks of no rows", pattern(Kind::Block2D, no_length)},
      {"no columns", pattern(Kind::Block2D, [](schema::PatternT& p) { p.image_width = 0; })},
      {"blocks of no columns",
       pattern(Kind::Block2D, [](schema::PatternT& p) { p.block_width = 0; })},
      {"no sets", pattern(Kind::Fixed, [](schema::PatternT& p) { p.summary_sets = 0; })},
      {"too large a summary", pattern(Kind::Fixed, [](schema::PatternT& p) { p.summary = 5; })},
      {"too many sets",
       pattern(Kind::Fixed, [](schema::PatternT& p) { p.summary_sets = p.summary = UINT32_MAX; })},
      {"a dilation of 0", pattern(Kind::Window, [](schema::PatternT& p) { p.dilation = {0}; })},
      {"a last dilation of 0", pattern(Kind::Window,
                                       [](schema::PatternT& p) {
                                         p.dilation = {1, 0};
                                       })},
      {"three dilations", pattern(Kind::Window,
                                  [](schema::PatternT& p) {
                                    p.dilation = {1, 1, 1};
                                  })},
  };
  Case c;
  c.type = GetParam();
  c.pattern.emplace();
  c.pattern->length = 4;
  c.pattern->image_width = 4;
  c.pattern->block_width = 2;
  c.pattern->summary = 1;
  for (Kind kind : schema::EnumValuesPatternKind()) {
    c.pattern->kind = kind;
    expect_refusals(c, breaks);
  }
}

}  // namespace
}  // namespace oxbow
