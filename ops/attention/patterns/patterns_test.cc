#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "ops/attention/patterns/pattern.h"
#include "ops/attention/seen.h"
#include "ops/attention/testing/formula.h"

namespace oxbow {
namespace {

using attention_test::pattern_shows;
using Kind = schema::PatternKind;

/// As bind does, for patterns it accepts.
PatternParams params_of(const schema::PatternT& p) {
  PatternParams params;
  params.kind = p.kind;
  params.before = p.before;
  params.after = p.after;
  params.dilation = p.dilation.data();
  params.dilations = static_cast<uint32_t>(p.dilation.size());
  params.first = p.first;
  params.length = p.length;
  params.wrap = p.wrap;
  params.causal = p.causal;
  params.summary = p.summary;
  params.summary_sets = p.summary_sets;
  params.image_width = p.image_width;
  params.block_width = p.block_width;
  return params;
}

/// Positions in the order they were emitted, and how many spans they came in.
struct Emitted {
  std::vector<uint64_t> positions;
  size_t spans = 0;
  /// In a span. A wrong count must not make the test run for ever.
  uint64_t most = UINT64_MAX;

  void push(const PositionSpan& span) {
    ASSERT_LE(span.count, most);
    ++spans;
    EXPECT_GT(span.count, 0u) << "an empty span";
    EXPECT_GT(span.step, 0u);
    for (uint64_t i = 0; i < span.count; ++i) positions.push_back(span.first + i * span.step);
  }
};

constexpr uint32_t kHeads = 3;

schema::PatternT random_pattern(Kind kind, std::mt19937& random) {
  // Mostly small numbers, sometimes the largest there are.
  const auto number = [&](uint32_t limit) {
    return random() % 12 == 0 ? UINT32_MAX - static_cast<uint32_t>(random() % 2)
                              : static_cast<uint32_t>(random() % limit);
  };
  const auto positive = [&](uint32_t limit) {
    const uint32_t n = number(limit);
    return n == UINT32_MAX ? n : n + 1;
  };
  schema::PatternT p;
  p.kind = kind;
  p.before = number(8);
  p.after = number(5);
  p.first = number(10) * static_cast<uint32_t>(random() % 2);
  p.length = positive(12);
  p.wrap = random() % 2 == 0;
  p.causal = random() % 2 == 0;
  const size_t dilations[] = {0, 1, kHeads};
  p.dilation.resize(dilations[random() % 3]);
  for (uint32_t& d : p.dilation) d = positive(4);
  p.summary_sets = 1 + static_cast<uint32_t>(random() % 3);
  p.summary = p.length / p.summary_sets;
  if (p.summary != 0) p.summary = static_cast<uint32_t>(random() % (uint64_t{p.summary} + 1));
  p.image_width = positive(9);
  p.block_width = positive(4);
  return p;
}

/// Those that later came are in sorted_test.cc.
std::vector<Kind> kinds_in_ascending_order() {
  std::vector<Kind> kinds;
  for (Kind kind : schema::EnumValuesPatternKind()) {
    if (kind <= Kind::Past) kinds.push_back(kind);
  }
  return kinds;
}

class AttentionPattern : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(All, AttentionPattern, ::testing::ValuesIn(kinds_in_ascending_order()),
                         [](const auto& test) {
                           return std::string(schema::EnumNamePatternKind(test.param));
                         });

TEST_P(AttentionPattern, ShowsWhatItsWordsSayInAscendingOrderAndOnce) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    const schema::PatternT p = random_pattern(GetParam(), random);
    const PatternParams params = params_of(p);
    const uint64_t positions = random() % 60;
    for (uint64_t query = 0; query <= positions; ++query) {
      if (query == positions && p.kind == Kind::Chunked && p.wrap) continue;  // Refused by bind.
      for (uint64_t head = 0; head < kHeads; ++head) {
        Emitted got;
        got.most = positions;
        if (positions != 0) {
          visit_of(params.kind)(params, head, query, positions, sink_of(got));
        }
        std::vector<uint64_t> want;
        for (uint64_t key = 0; key < positions; ++key) {
          if (pattern_shows(p, static_cast<int64_t>(head), static_cast<int64_t>(query),
                            static_cast<int64_t>(key), static_cast<int64_t>(positions))) {
            want.push_back(key);
          }
        }
        ASSERT_EQ(got.positions, want)
            << "round " << round << " query " << query << " of " << positions << " head " << head
            << " before " << p.before << " after " << p.after << " first " << p.first << " length "
            << p.length << " wrap " << p.wrap << " causal " << p.causal << " summary " << p.summary
            << "x" << p.summary_sets << " image " << p.image_width << " block " << p.block_width;
        ASSERT_LE(got.spans, want.size());
      }
    }
  }
}

TEST(AttentionPatternWork, AWindowOverMillionsOfSlotsIsOneSpan) {
  struct Spans : std::vector<PositionSpan> {
    void push(const PositionSpan& span) { push_back(span); }
  } spans;
  const uint32_t dilation = 3;
  PatternParams params;
  params.before = 100;
  params.after = 20;
  params.dilation = &dilation;
  params.dilations = 1;
  params.first = 4;
  WindowPattern::visit(params, 0, 50'000'000, 100'000'000, sink_of(spans));
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].count, 4u);
  EXPECT_EQ(spans[1].first, 50'000'000u - 300u);
  EXPECT_EQ(spans[1].count, 121u);
}

/// Random spans, in ascending order, within [0, positions).
std::vector<PositionSpan> random_spans(uint64_t positions, std::mt19937& random) {
  std::vector<PositionSpan> spans;
  for (uint64_t at = random() % 5; at < positions; at += 1 + random() % 6) {
    const uint64_t step = 1 + random() % 4;
    const uint64_t count = 1 + random() % ((positions - at + step - 1) / step);
    spans.push_back({at, count, step});
    at += (count - 1) * step;
  }
  return spans;
}

TEST(AttentionFilters, GlobalsAreAddedAndMasksTakenAwayInOrder) {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    const uint64_t memory = random() % 20;
    const size_t rows = random() % 40;
    const uint64_t positions = memory + rows;
    std::vector<int32_t> flags(rows), mask(rows);
    const uint32_t rare = 1 + static_cast<uint32_t>(random() % 8);
    for (int32_t& flag : flags) flag = random() % rare == 0 ? 1 : 0;
    for (int32_t& m : mask) m = random() % rare == 0 ? 0 : -7;
    const bool has_mask = random() % 2 == 0;
    const uint64_t kept = rows != 0 && random() % 2 == 0 ? random() % rows : kNoRow;
    const std::vector<PositionSpan> spans = random_spans(positions, random);

    std::vector<uint32_t> turns(rows), list(rows);
    find_turns(mask.data(), rows, turns.data());
    const size_t count = find_globals(flags.data(), rows, list.data());
    Emitted got;
    const auto add = [&](const PositionSpan& span) { got.push(span); };
    const MaskFilter masked(mask.data(), turns.data(), memory, kept, add);
    const auto through_mask = [&](const PositionSpan& span) {
      if (has_mask) {
        masked.push(span);
      } else {
        add(span);
      }
    };
    GlobalsFilter globals(list.data(), count, memory, through_mask);
    for (const PositionSpan& span : spans) globals.push(span);
    globals.finish();

    std::vector<bool> seen(positions);
    for (const PositionSpan& span : spans) {
      for (uint64_t i = 0; i < span.count; ++i) seen[span.first + i * span.step] = true;
    }
    std::vector<uint64_t> want;
    for (uint64_t j = 0; j < positions; ++j) {
      const uint64_t row = j - memory;
      if (j >= memory && flags[row] != 0) seen[j] = true;
      if (has_mask && j >= memory && mask[row] == 0 && row != kept) seen[j] = false;
      if (seen[j]) want.push_back(j);
    }
    ASSERT_EQ(got.positions, want) << "round " << round;
    ASSERT_LE(got.spans, want.size());
  }
}

}  // namespace
}  // namespace oxbow
