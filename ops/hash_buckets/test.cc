#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/hash_buckets/hash_buckets.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::i32_tensor;
using testing::OpRunner;
using testing::TestTensor;

/// 2 heads of 5, 3 rounds, 4 * 6 buckets. Symbol 0: rows; 1: buckets.
struct Fixture {
  static constexpr uint32_t kHeads = 2, kWidth = 5, kRounds = 3, kRows = 11, kAll = 24;
  TestTensor x = f32_tensor("x", kRows, kHeads*kWidth),
             rotations = f32_tensor("rotations", kHeads*kWidth, kRounds * 5),
             mask = i32_tensor("mask", kRows, 1),
             buckets = i32_tensor("buckets", kHeads*kRounds*kRows, 1);
  schema::HashBucketsOptionsT options;
  OpRunner op{bind_hash_buckets};
  Fixture() {
    fill_uniform(x, 1);
    fill_uniform(rotations, 2);
    for (uint32_t i = 0; i < kRows; ++i) mask.i32()[i] = 1;
    x.rows_symbol = mask.rows_symbol = 0;
    buckets.rows_symbol = 1;
    buckets.limit = kRounds * (kAll + 1);
    options.heads = kHeads;
    options.rounds = kRounds;
    options.buckets = {4, 6};
    options.has_mask = true;
    op.options(options);
    op.inputs = {&x, &rotations, &mask};
    op.outputs = {&buckets};
    op.symbols = {kRows, 99};
    op.symbol_maxima = {kRows, kHeads * kRounds * kRows};
    op.settable_symbols = {false, true};
  }
  template <typename Change>
  void change(const Change& apply) {
    apply(options);
    op.options(options);
  }

  uint32_t formula(uint32_t head, uint32_t round, uint32_t row) const {
    std::vector<double> p(5);
    for (uint32_t c = 0; c < 5; ++c) {
      for (uint32_t d = 0; d < kWidth; ++d) {
        p[c] += x.value(row, head * kWidth + d) * rotations.value(head * kWidth + d, round * 5 + c);
      }
    }
    const auto digit = [&](uint32_t first, uint32_t half) {
      uint32_t best = 0;
      double most = -1e30;
      for (uint32_t i = 0; i < 2 * half; ++i) {
        const double value = i < half ? p[first + i] : -p[first + i - half];
        if (value > most) most = value, best = i;
      }
      return best;
    };
    return digit(0, 2) + 4 * digit(2, 3);
  }
};

TEST(HashBuckets, AreTheGreatestOfTheRotationsWithBothSigns) {
  for (bool hides : {false, true}) {
    for (size_t threads : {1u, 3u}) {
      testing::Team team(threads);
      Fixture s;
      s.op.threads = threads;
      s.op.pool = team.pool();
      if (hides) s.mask.i32()[4] = s.mask.i32()[9] = 0;
      ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
      ASSERT_EQ(s.op.symbols[1], Fixture::kHeads * Fixture::kRounds * Fixture::kRows);
      const uint32_t step = Fixture::kAll + (hides ? 1 : 0);
      for (uint32_t head = 0; head < Fixture::kHeads; ++head) {
        for (uint32_t round = 0; round < Fixture::kRounds; ++round) {
          for (uint32_t row = 0; row < Fixture::kRows; ++row) {
            const bool hidden = hides && (row == 4 || row == 9);
            const uint32_t want =
                round * step + (hidden ? Fixture::kAll : s.formula(head, round, row));
            const uint32_t at = (head * Fixture::kRounds + round) * Fixture::kRows + row;
            ASSERT_EQ(s.buckets.i32()[at], static_cast<int32_t>(want)) << head << round << row;
          }
        }
      }
    }
  }
}

TEST(HashBuckets, AreNoneForFewRows) {
  Fixture s;
  s.change([](auto& o) { o.above = Fixture::kRows; });
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  EXPECT_EQ(s.op.symbols[1], 0u);
  EXPECT_EQ(s.buckets.i32()[0], -1) << "untouched";
}

TEST(HashBuckets, OfNanAreWithinTheLimit) {
  Fixture s;
  fill_uniform(s.x, 1, NAN, NAN);
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  for (uint32_t i = 0; i < s.op.symbols[1]; ++i) {
    ASSERT_LT(static_cast<uint32_t>(s.buckets.i32()[i]), s.buckets.limit);
  }
}

TEST(HashBuckets, RefuseStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"heads", [](Fixture& s) { s.change([](auto& o) { o.heads = 3; }); },
       "has room for 66 rows, expected 99"},
      {"rounds", [](Fixture& s) { s.change([](auto& o) { o.rounds = 0; }); }, "0 rounds"},
      {"none", [](Fixture& s) { s.change([](auto& o) { o.buckets = {}; }); }, "has 0 numbers"},
      {"odd", [](Fixture& s) { s.change([](auto& o) {
                                 o.buckets = {4, 3};
                               }); }, "even numbers"},
      {"many", [](Fixture& s) { s.change([](auto& o) {
                                  o.buckets = {1u << 20, 1u << 20};
                                }); },
       "even numbers"},
      {"rotations", [](Fixture& s) { s.change([](auto& o) {
                                       o.buckets = {4, 4};
                                     }); },
       "expected a width of 12"},
      {"limit", [](Fixture& s) { s.buckets.limit = 74; }, "expected a limit of 75"},
      {"room", [](Fixture& s) { s.op.symbol_maxima[1] = 65; }, "room for 65 rows"},
  });
}

}  // namespace
}  // namespace oxbow
