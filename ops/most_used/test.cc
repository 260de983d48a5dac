#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "ops/most_used/most_used.h"
#include "ops/testing/refusals.h"
#include "ops/testing/team.h"
#include "runtime/base/ring_rule.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::fill;
using testing::fill_uniform;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

constexpr uint32_t kHeads = 2, kHeadWidth = 5, kKeys = kHeads * kHeadWidth, kWidth = 7;
constexpr float kScale = 0.4f;

TestTensor any_tensor(bool i8, const char* name, uint32_t rows, uint32_t width, uint32_t scales) {
  return i8 ? i8_tensor(name, rows, width, scales) : f32_tensor(name, rows, width);
}

/// Symbol 0: new rows. Symbol 1: groups, with no more room than the worst case needs.
struct Fixture {
  explicit Fixture(bool i8 = false, uint32_t capacity = 8, uint32_t group = 3, uint32_t most = 10)
      : q(f32_tensor("q", most, kKeys)),
        log_sums(f32_tensor("log_sums", most, kHeads)),
        keys(any_tensor(i8, "keys", most, kKeys, kHeads)),
        x(f32_tensor("x", most, kWidth)),
        key_memory(any_tensor(i8, "key_memory", capacity, kKeys, kHeads)),
        memory(any_tensor(i8, "memory", capacity, kWidth, 1)),
        table(any_tensor(i8, "table", 11, kKeys, kHeads)),
        bias(f32_tensor("bias", 11, kHeads)),
        query_bias(f32_tensor("query_bias", 1, kKeys)),
        usage(f32_tensor("usage", capacity, 1)),
        rows(f32_tensor("rows", (most + group - 1) / group, kWidth)) {
    op.inputs = {&q.with_symbol(0),
                 &log_sums.with_symbol(0),
                 &keys.with_symbol(0),
                 &x.with_symbol(0),
                 &key_memory.with_ring(0),
                 &memory.with_ring(0),
                 &table,
                 &bias,
                 &query_bias,
                 &usage};
    op.outputs = {&rows.with_symbol(1), &usage};
    op.symbols = {most, 99};
    op.symbol_maxima = {most, rows.rows};
    op.settable_symbols = {false, true};
    op.rings = {{0, 0}};
    op.ring_capacities = {capacity};
    options.heads = kHeads;
    options.scale = kScale;
    options.group = group;
    uint64_t seed = 1;
    for (TestTensor* tensor : op.inputs) fill_uniform(*tensor, seed++);
    fill_uniform(log_sums, 99, 1.0f, 2.0f);
    fill_uniform(usage, 98, 0.0f, 4.0f);
    op.options(options);
  }
  TestTensor q, log_sums, keys, x, key_memory, memory, table, bias, query_bias, usage, rows;
  schema::MostUsedOptionsT options;
  OpRunner op{bind_most_used};
};

/// The formula of the header, in double.
struct Expected {
  /// Of every row of the line, and which row of each group is kept.
  std::vector<double> usage;
  std::vector<size_t> kept;
  std::vector<std::vector<double>> line;
  /// By how much the closest choice was made.
  double margin = 1;

  Expected(const Fixture& s, uint32_t head, uint32_t held, uint32_t count, uint32_t group) {
    const uint32_t capacity = s.memory.rows, n = held + count;
    const RingStep step = ring_step(held, count, capacity, group);
    for (uint32_t r = 0; r < n; ++r) {
      const bool own = r >= held;
      const TestTensor& keys = own ? s.keys : s.key_memory;
      const uint32_t row = own ? r - held : (head + r) % capacity;
      double sum = own ? 0.0 : s.usage.value(r, 0);
      for (uint32_t i = own ? r - held : 0; i < count; ++i) {
        const uint32_t t = std::min(held + i - r, s.table.rows - 1);
        for (uint32_t h = 0; h < kHeads; ++h) {
          double score = s.bias.value(t, h);
          for (uint32_t d = h * kHeadWidth; d < (h + 1) * kHeadWidth; ++d) {
            score += (s.q.value(i, d) + s.query_bias.value(0, d)) * keys.value(row, d) +
                     s.q.value(i, d) * s.table.value(t, d);
          }
          sum += std::exp(double{kScale} * score - s.log_sums.value(i, h));
        }
      }
      usage.push_back(sum);
      line.emplace_back();
      for (uint32_t d = 0; d < kWidth; ++d) {
        line.back().push_back(own ? s.x.value(row, d) : s.memory.value(row, d));
      }
    }
    const auto average = [&](size_t r) { return usage[r] / static_cast<double>(n - r); };
    for (size_t g = 0; g < step.groups; ++g) {
      size_t most = g * group;
      for (size_t r = most + 1; r < (g + 1) * group; ++r) {
        margin = std::min(margin, std::abs(average(r) / average(most) - 1));
        if (average(r) > average(most)) most = r;
      }
      kept.push_back(most);
    }
  }
};

void expect_most_used(bool i8, uint32_t seed, size_t threads) {
  std::mt19937 random(seed);
  const uint32_t group = 1 + random() % 4, capacity = group + random() % 8;
  const uint32_t most = 1 + random() % 12;
  Fixture s(i8, capacity, group, most);
  const uint32_t head = random() % capacity, held = random() % (capacity + 1);
  const uint32_t count = random() % (most + 1);
  SCOPED_TRACE(::testing::Message()
               << "seed " << seed << " capacity " << capacity << " group " << group << " head "
               << head << " held " << held << " new " << count);
  testing::Team team(threads);
  s.op.threads = threads;
  s.op.pool = team.pool();
  s.op.symbols[0] = count;
  s.op.rings[0] = {head, held};
  const Expected want(s, head, held, count, group);
  ASSERT_GT(want.margin, 1e-5) << "nearly a tie says nothing: another seed";
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();

  ASSERT_EQ(s.op.symbols[1], want.kept.size());
  for (size_t g = 0; g < want.kept.size(); ++g) {
    for (uint32_t d = 0; d < kWidth; ++d) {
      // Copied, or a code times its scale, rounded once.
      ASSERT_EQ(s.rows.f32(g)[d], static_cast<float>(want.line[want.kept[g]][d]));
    }
  }
  // Scores below 8 are off by less than 2e-6, and so are their exponentials, relatively; 24 sums of such.
  const RingStep step = ring_step(held, count, capacity, group);
  for (uint32_t r = 0; r < capacity; ++r) {
    const double expected = r < step.staying ? want.usage[step.leaving + r] : 0.0;
    ASSERT_NEAR(s.usage.value(r, 0), expected, 1e-5 * (1 + expected)) << "row " << r;
  }
}

TEST(MostUsed, KeepsTheRowOfEachGroupThatGotTheMostAttention) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    expect_most_used(seed % 2 != 0, seed, seed % 3 == 0 ? 3 : 1);
  }
}

TEST(MostUsed, KeepsTheOldestOfEqualRowsAndNeverOneThatIsNotANumber) {
  Fixture s;
  s.op.rings[0] = {0, 8};
  s.op.symbols[0] = 3;
  // Nothing is added by a row whose weights are e^-200, so that averages are those of `usage`.
  fill(s.log_sums, std::vector<float>(20, 200.0f));
  // Of eleven rows, so many see them: 11, 10, 9.
  fill(s.usage, {2 * 11, 2 * 10, 2 * 9, 1, 1, 1, 1, 1});
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  ASSERT_EQ(s.op.symbols[1], 1u);
  EXPECT_EQ(s.rows.f32(0)[3], s.memory.f32(0)[3]);
  fill(s.usage, {NAN, NAN, 9, 1, 1, 1, 1, 1});
  ASSERT_EQ(s.op.bind_and_run(), Status::kOk) << s.op.message();
  EXPECT_EQ(s.rows.f32(0)[3], s.memory.f32(2)[3]);
}

TEST(MostUsed, RefusesStepsThatMakeNoSense) {
  testing::expect_refusals<Fixture>({
      {"no heads",
       [](Fixture& s) {
         s.options.heads = 0;
         s.op.options(s.options);
       },
       "0 heads"},
      {"heads that do not divide",
       [](Fixture& s) {
         s.options.heads = 3;
         s.op.options(s.options);
       },
       "expected a width of 3"},
      {"no scale",
       [](Fixture& s) {
         s.options.scale = INFINITY;
         s.op.options(s.options);
       },
       "finite"},
      {"no group",
       [](Fixture& s) {
         s.options.group = 0;
         s.op.options(s.options);
       },
       "group is 0"},
      {"groups beyond the ring",
       [](Fixture& s) {
         s.options.group = 10;
         s.op.options(s.options);
       },
       "too few for groups of 10"},
      {"two rings",
       [](Fixture& s) {
         s.op.rings.push_back({0, 0});
         s.op.ring_capacities.push_back(8);
         s.memory.with_ring(1);
       },
       "same ring"},
      {"too little room", [](Fixture& s) { s.op.symbol_maxima[1] = 3; }, "expected 4"},
      {"rows that nobody counts", [](Fixture& s) { s.op.symbol_maxima[0] = 11; }, "room for"},
  });
  Fixture s;
  TestTensor other = f32_tensor("other", 8, 1), narrow = f32_tensor("narrow", 7, 1);
  s.op.outputs[1] = &other;
  EXPECT_EQ(s.op.bind(), Status::kFileCorrupt);
  s.op.inputs[9] = s.op.outputs[1] = &narrow;
  EXPECT_EQ(s.op.bind(), Status::kFileCorrupt);
  Fixture scales(true);
  TestTensor one = i8_tensor("one", 11, kKeys, 1);
  scales.op.inputs[6] = &one;
  EXPECT_EQ(scales.op.bind(), Status::kFileCorrupt);
  EXPECT_NE(std::string(scales.op.message()).find("a scale for each of 2 heads"), std::string::npos)
      << scales.op.message();
}

}  // namespace
}  // namespace oxbow
