#include "runtime/text/bpe.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace oxbow {
namespace {

struct Rule {
  uint32_t rank;
  uint32_t result;
};
using Rules = std::map<std::pair<uint32_t, uint32_t>, Rule>;

std::vector<schema::Merge> hashed(const Rules& rules) {
  std::vector<schema::Merge> places(2 * rules.size() + 1,
                                    schema::Merge(kNoPiece, kNoPiece, kNoPiece, kNoPiece));
  for (const auto& [pair, rule] : rules) {
    size_t at = merge_place(pair.first, pair.second, places.size());
    while (places[at].left() != kNoPiece) at = (at + 1) % places.size();
    places[at] = schema::Merge(pair.first, pair.second, rule.rank, rule.result);
  }
  return places;
}

/// As it is defined: the lowest rank, the leftmost of equal ones, again and again.
std::vector<Symbol> merge_plainly(const Rules& rules, std::vector<Symbol> symbols) {
  for (;;) {
    const Rule* best = nullptr;
    size_t place = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto rule = rules.find({symbols[i].piece, symbols[i + 1].piece});
      if (rule == rules.end() || (best != nullptr && rule->second.rank >= best->rank)) continue;
      best = &rule->second;
      place = i;
    }
    if (best == nullptr) return symbols;
    symbols[place] = {best->result, symbols[place].bytes + symbols[place + 1].bytes};
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

std::vector<Symbol> merge(const Rules& rules, std::vector<Symbol> symbols) {
  const std::vector<schema::Merge> places = hashed(rules);
  std::vector<uint32_t> scratch(merge_scratch_bytes(symbols.size()) / sizeof(uint32_t));
  symbols.resize(
      merge_symbols(MergeTable(places), symbols, std::as_writable_bytes(std::span(scratch))));
  return symbols;
}

void expect_same(const std::vector<Symbol>& a, const std::vector<Symbol>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].piece, b[i].piece) << "symbol " << i;
    ASSERT_EQ(a[i].bytes, b[i].bytes) << "symbol " << i;
  }
}

TEST(BpeMerges, TheLowestRankGoesFirstAndTheLeftmostOfEqualOnes) {
  const Rules rules = {{{0, 1}, {1, 10}}, {{1, 2}, {0, 11}}, {{0, 0}, {2, 12}}};
  expect_same(merge(rules, {{0, 1}, {1, 1}, {2, 1}}), {{0, 1}, {11, 2}});
  expect_same(merge(rules, {{0, 1}, {0, 1}, {0, 1}}), {{12, 2}, {0, 1}});
  expect_same(merge(rules, {}), {});
  expect_same(merge(rules, {{0, 3}}), {{0, 3}});
}

TEST(BpeMerges, UnknownSymbolsJoinWithNothing) {
  const Rules rules = {{{0, 0}, {0, 1}}};
  for (const size_t repeats : {1, 100}) {
    std::vector<Symbol> symbols;
    std::vector<Symbol> expected;
    for (size_t i = 0; i < repeats; ++i) {
      symbols.insert(symbols.end(), {{kNoPiece, 2}, {kNoPiece, 3}, {0, 1}, {0, 1}});
      expected.insert(expected.end(), {{kNoPiece, 2}, {kNoPiece, 3}, {1, 2}});
    }
    expect_same(merge(rules, symbols), expected);
  }
}

TEST(BpeMerges, AreThoseOfTheDefinitionForWordsOfEveryLength) {
  std::mt19937 generator(1);
  const auto random = [&] { return static_cast<uint32_t>(generator()); };
  for (size_t round = 0; round < 300; ++round) {
    Rules rules;
    const uint32_t letters = 2 + random() % 4;
    uint32_t pieces = letters;
    for (size_t i = 0; i < 60; ++i) {
      // Few ranks, so that different pairs share one.
      if (rules
              .emplace(std::pair(random() % pieces, random() % pieces), Rule{random() % 40, pieces})
              .second) {
        ++pieces;
      }
    }
    std::vector<Symbol> symbols(1 + random() % (round % 3 == 0 ? 600 : 60));
    for (Symbol& symbol : symbols) {
      symbol = {random() % 50 == 0 ? kNoPiece : random() % letters, 1 + random() % 3};
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(merge(rules, symbols), merge_plainly(rules, symbols)))
        << "round " << round;
  }
}

/// A file may say anything: a result may be one of the parts, and the table may have no empty place.
TEST(BpeMerges, ATableThatGoesInCirclesComesToAnEnd) {
  for (const size_t count : {40, 5000}) {
    const std::vector<schema::Merge> places(1, schema::Merge(0, 0, 0, 0));
    std::vector<Symbol> symbols(count, Symbol{0, 1});
    std::vector<uint32_t> scratch(merge_scratch_bytes(count) / sizeof(uint32_t));
    ASSERT_EQ(
        merge_symbols(MergeTable(places), symbols, std::as_writable_bytes(std::span(scratch))), 1u);
    EXPECT_EQ(symbols[0].bytes, count);
  }
}

}  // namespace
}  // namespace oxbow
