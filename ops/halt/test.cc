#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "ops/halt/halt.h"
#include "ops/testing/refusals.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::OpRunner;
using testing::TestTensor;

constexpr uint32_t kMost = 6, kWidth = 4;

/// Symbols: rows of this round, all rows, rows of the next round.
struct Fixture {
  TestTensor p = f32_tensor("p", kMost, 1), x = f32_tensor("x", kMost, kWidth);
  TestTensor counts = f32_tensor("counts", kMost, 3), mix = f32_tensor("mix", kMost, kWidth);
  TestTensor new_counts = f32_tensor("new_counts", kMost, 3);
  TestTensor new_mix = f32_tensor("new_mix", kMost, kWidth),
             next = f32_tensor("next", kMost, kWidth);
  OpRunner op{bind_halt};

  explicit Fixture(uint32_t rows = 5, bool first = false) {
    fill_uniform(p, 1, 0.1f, 0.8f);
    fill_uniform(x, 2);
    fill_uniform(mix, 3);
    testing::fill(counts, std::vector<float>(kMost * 3));
    p.rows_symbol = x.rows_symbol = first ? 1 : 0;
    counts.rows_symbol = mix.rows_symbol = new_counts.rows_symbol = new_mix.rows_symbol = 1;
    next.rows_symbol = 2;
    op.symbols = {rows, rows, 99};
    op.symbol_maxima = {kMost, kMost, kMost};
    op.settable_symbols = {false, false, true};
    op.inputs = {&p, &x};
    if (!first) op.inputs.insert(op.inputs.end(), {&counts, &mix});
    op.outputs = {&new_counts, &new_mix, &next};
    op.options(schema::HaltOptionsT{});
  }
};

TEST(Halt, RowsRunUntilTheThresholdAndTheMixTakesTheRemainder) {
  // One row's probabilities of each round; what becomes of it is written out by hand.
  const std::vector<std::vector<float>> p = {
      {0.5f, 0.95f, 0.25f}, {0.25f, 0.5f, 0.25f}, {0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.125f}};
  const std::vector<std::vector<float>> updates = {{1, 1, 1}, {2, 1, 2}, {3, 1, 3}, {3, 1, 4}};
  const std::vector<std::vector<float>> remainders = {
      {0, 1, 0}, {0, 1, 0}, {0.25f, 1, 0.5f - 0.0f}, {0.25f, 1, 0.5f}};
  const std::vector<std::vector<float>> weights = {
      {0.5f, 1, 0.25f}, {0.25f, 0, 0.25f}, {0.25f, 0, 0.5f}, {0, 0, 0}};
  std::vector<float> counts(3 * 3), mix(3 * kWidth);
  for (size_t round = 0; round < 3; ++round) {
    Fixture s(3, round == 0);
    for (size_t row = 0; row < 3; ++row) s.p.f32()[row] = p[round][row];
    if (round != 0) {
      std::copy(counts.begin(), counts.end(), s.counts.f32());
      std::copy(mix.begin(), mix.end(), s.mix.f32());
    }
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    for (size_t row = 0; row < 3; ++row) {
      const bool halts_in_third = row == 2 && round == 2;
      // Row 2 reaches 0.5 + 0.5 in the third round: its remainder is what was missing before.
      EXPECT_EQ(s.new_counts.f32(row)[2], updates[round][row]) << round << " " << row;
      EXPECT_EQ(s.new_counts.f32(row)[1], halts_in_third ? 0.5f : remainders[round][row])
          << round << " " << row;
      for (size_t i = 0; i < kWidth; ++i) {
        const float w = weights[round][row];
        EXPECT_EQ(s.new_mix.f32(row)[i], s.x.f32(row)[i] * w + mix[row * kWidth + i] * (1.0f - w));
      }
    }
    counts.assign(s.new_counts.f32(), s.new_counts.f32() + counts.size());
    mix.assign(s.new_mix.f32(), s.new_mix.f32() + mix.size());
    EXPECT_EQ(s.op.symbols[2], round == 2 ? 0u : 3u) << "all rows go on until the last has halted";
  }
}

TEST(Halt, NextRowsAreAllOrNone) {
  Fixture running;
  running.counts.f32(0)[0] = 1.0f;
  ASSERT_EQ(running.op.bind_and_run(), Status::kOk) << running.op.message();
  ASSERT_EQ(running.op.symbols[2], 5u);
  for (size_t row = 0; row < 5; ++row) {
    for (size_t i = 0; i < kWidth; ++i) ASSERT_EQ(running.next.f32(row)[i], running.x.f32(row)[i]);
  }
  EXPECT_TRUE(std::isnan(running.next.f32(5)[0])) << "untouched";
  EXPECT_EQ(running.new_counts.f32(0)[2], 0.0f) << "a row that has halted is not counted again";

  Fixture halted;
  for (size_t row = 0; row < 5; ++row) halted.p.f32()[row] = 0.95f;
  ASSERT_EQ(halted.op.bind_and_run(), Status::kOk) << halted.op.message();
  EXPECT_EQ(halted.op.symbols[2], 0u);
  EXPECT_TRUE(std::isnan(halted.next.f32(0)[0])) << "untouched";
}

TEST(Halt, ARoundWithoutRowsKeepsWhatThereIs) {
  Fixture s;
  s.op.symbols[0] = 0;
  fill_uniform(s.counts, 9);
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  EXPECT_EQ(s.op.symbols[2], 0u);
  for (size_t i = 0; i < 5 * kWidth; ++i) ASSERT_EQ(s.new_mix.f32()[i], s.mix.f32()[i]);
  for (size_t i = 0; i < 5 * 3; ++i) ASSERT_EQ(s.new_counts.f32()[i], s.counts.f32()[i]);
  Fixture some;
  some.op.symbols[0] = 3;
  ASSERT_EQ(some.op.bind(), Status::kOk);
  EXPECT_EQ(some.op.run(), Status::kFileCorrupt) << "some rows are neither all nor none";
}

TEST(Halt, ProbabilitiesThatAreNoNumbersDoNoHarm) {
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    Fixture s;
    s.p.f32()[1] = bad;
    ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
    EXPECT_LE(s.op.symbols[2], 5u);
  }
}

TEST(Halt, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no options", [](Fixture& s) { s.op.step.options.Reset(); }, "has no HaltOptions"},
      {"inputs", [](Fixture& s) { s.op.inputs.pop_back(); }, "has 3 inputs"},
      {"outputs", [](Fixture& s) { s.op.outputs.pop_back(); }, "2 outputs"},
      {"p width", [](Fixture& s) { s.p.width = 2; }, "expected"},
      {"p rows", [](Fixture& s) { s.p.rows_symbol = 1; }, "expected equal rows"},
      {"counts width", [](Fixture& s) { s.counts.width = 4; }, "expected"},
      {"mix rows", [](Fixture& s) { s.mix.rows_symbol = 0; }, "expected equal rows"},
      {"new mix width", [](Fixture& s) { s.new_mix.width = 3; }, "expected"},
      {"next type", [](Fixture& s) { s.next.type = DataType::kI32; }, "expected F32"},
      {"next symbol", [](Fixture& s) { s.next.rows_symbol = 0; }, "symbol of its own"},
      {"a symbol of the caller", [](Fixture& s) { s.op.settable_symbols[2] = false; },
       "symbol of its own"},
      {"next room",
       [](Fixture& s) {
         s.next.rows = 4;
         s.op.symbol_maxima[2] = 4;
       },
       "room for 4"},
      {"threshold",
       [](Fixture& s) {
         schema::HaltOptionsT o;
         o.threshold = 0.0f;
         s.op.options(o);
       },
       "threshold is 0"},
  });
}

}  // namespace
}  // namespace oxbow
