#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "ops/sort_rows/sort_rows.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using testing::i32_tensor;
using testing::OpRunner;
using testing::TestTensor;

/// Three lists. Symbol 0: keys, 1: order, 2: keys that are given.
struct Fixture {
  static constexpr uint32_t kLists = 3, kRows = 3 * 40;
  TestTensor keys = i32_tensor("keys", kRows, 1), given = i32_tensor("given", kRows, 1),
             order = i32_tensor("order", kRows, 1);
  schema::SortRowsOptionsT options;
  OpRunner op{bind_sort_rows};
  Fixture() {
    keys.rows_symbol = 0;
    order.rows_symbol = 1;
    given.rows_symbol = 2;
    keys.limit = 9;
    given.limit = 5;
    order.limit = 40;
    std::mt19937 random(3);
    for (uint32_t i = 0; i < kRows; ++i) {
      keys.i32()[i] = static_cast<int32_t>(random() % 9);
      given.i32()[i] = static_cast<int32_t>(random() % 5);
    }
    options.lists = kLists;
    op.options(options);
    op.inputs = {&keys, &given};
    op.outputs = {&order};
    op.symbols = {kRows, 99, 0};
    op.symbol_maxima = {kRows, kRows, kRows};
    op.settable_symbols = {false, true, false};
  }
};

void expect_sorted(const Fixture& s, const TestTensor& keys, uint32_t rows) {
  ASSERT_EQ(s.op.symbols[1], rows);
  const uint32_t n = rows / Fixture::kLists;
  for (uint32_t list = 0; list < Fixture::kLists; ++list) {
    std::vector<int32_t> want(n);
    std::iota(want.begin(), want.end(), 0);
    const int32_t* of = keys.i32() + list * n;
    std::stable_sort(want.begin(), want.end(), [&](int32_t a, int32_t b) { return of[a] < of[b]; });
    for (uint32_t i = 0; i < n; ++i) ASSERT_EQ(s.order.i32()[list * n + i], want[i]);
  }
}

TEST(SortRows, SortsEachListAndKeepsTheOrderOfEqualKeys) {
  for (size_t threads : {1u, 3u}) {
    testing::Team team(threads);
    for (uint32_t rows : {0u, 3u, 60u, 120u}) {
      Fixture s;
      s.op.threads = threads;
      s.op.pool = team.pool();
      s.op.symbols[0] = rows;
      ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
      expect_sorted(s, s.keys, rows);
    }
  }
}

TEST(SortRows, TakesTheGivenKeysIfThereAreAny) {
  Fixture s;
  s.op.symbols[2] = Fixture::kRows;
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  expect_sorted(s, s.given, Fixture::kRows);
  Fixture other;
  other.op.symbols[2] = 60;
  ASSERT_EQ(other.op.bind_and_run(), Status::kInvalidArgument);
  EXPECT_NE(std::string(other.op.message()).find("'given' has 60 rows, expected 120"),
            std::string::npos)
      << other.op.message();
}

TEST(SortRows, RefusesKeysBeyondTheirLimit) {
  for (int32_t wrong : {9, -1}) {
    Fixture s;
    s.keys.i32()[77] = wrong;
    ASSERT_EQ(s.op.bind_and_run(), Status::kInvalidArgument);
  }
}

TEST(SortRows, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no lists",
       [](Fixture& s) {
         s.options.lists = 0;
         s.op.options(s.options);
       },
       "0 lists"},
      {"no limit", [](Fixture& s) { s.keys.limit = s.given.limit = 0; }, "expected a limit"},
      {"too high a limit", [](Fixture& s) { s.keys.limit = 1u << 25; }, "expected a limit"},
      {"a limit that the order reaches", [](Fixture& s) { s.order.limit = 39; },
       "'order' has values below 39, expected a limit of at least 40"},
      {"no room", [](Fixture& s) { s.op.symbol_maxima[1] = 119; }, "room for 119 rows"},
  });
}

}  // namespace
}  // namespace oxbow
