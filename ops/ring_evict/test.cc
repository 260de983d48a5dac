#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "ops/ring_evict/ring_evict.h"
#include "ops/testing/op_runner.h"
#include "runtime/base/ring_rule.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::fill_uniform;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

constexpr uint32_t kWidth = 7;

/// Symbol 0: new rows. Symbol 1: groups, with no more room than the worst case needs.
struct Evict {
  Evict(DataType type, uint32_t capacity, uint32_t group, uint32_t max_rows)
      : rows(f32_tensor("rows", max_rows, kWidth)),
        memory(type == DataType::kF32 ? f32_tensor("memory", capacity, kWidth)
                                      : i8_tensor("memory", capacity, kWidth)),
        groups(f32_tensor("groups", (max_rows + group - 1) / group, group * kWidth)),
        op(bind_ring_evict) {
    op.symbols = {0, 99};
    op.symbol_maxima = {max_rows, groups.rows};
    op.settable_symbols = {false, true};
    op.rings = {{0, 0}};
    op.ring_capacities = {capacity};
    op.inputs = {&rows.with_symbol(0), &memory.with_ring(0)};
    op.outputs = {&groups.with_symbol(1)};
    options.group = group;
  }
  Status bind() {
    op.options(options);
    return op.bind();
  }
  TestTensor rows, memory, groups;
  OpRunner op;
  schema::RingEvictOptionsT options;
};

TEST(RingEvict, ReadsTheRowsThatWillLeaveSideBySide) {
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    const DataType type = round % 2 == 0 ? DataType::kF32 : DataType::kI8;
    const uint32_t group = 1 + random() % 5;
    const uint32_t capacity = std::max<uint32_t>(1, group - 1) + random() % 12;
    const uint32_t max_rows = 1 + random() % 30;
    Evict evict(type, capacity, group, max_rows);
    const uint32_t head = random() % capacity, held = random() % (capacity + 1);
    const uint32_t count = round % 5 == 0 ? max_rows : random() % (max_rows + 1);
    SCOPED_TRACE(::testing::Message()
                 << "round " << round << " capacity " << capacity << " group " << group << " head "
                 << head << " held " << held << " new " << count << " of " << max_rows);
    fill_uniform(evict.rows, random());
    fill_uniform(evict.memory, random());
    evict.op.symbols[0] = count;
    evict.op.rings[0] = {head, held};
    ASSERT_EQ(evict.bind(), Status::kOk) << evict.op.message();
    ASSERT_EQ(evict.op.run(), Status::kOk) << evict.op.message();

    // The line of all rows, oldest first; an int8 row's values as float rounds them.
    std::vector<std::vector<float>> line;
    for (uint32_t r = 0; r < held + count; ++r) {
      std::vector<float> row(kWidth);
      for (uint32_t d = 0; d < kWidth; ++d) {
        row[d] = static_cast<float>(r < held ? evict.memory.value((head + r) % capacity, d)
                                             : evict.rows.value(r - held, d));
      }
      line.push_back(row);
    }
    uint32_t expected = 0;
    while (line.size() - expected * group > capacity) ++expected;
    ASSERT_EQ(evict.op.symbols[1], expected);
    for (uint32_t g = 0; g < expected; ++g) {
      for (uint32_t column = 0; column < group * kWidth; ++column) {
        ASSERT_EQ(evict.groups.f32(g)[column], line[g * group + column / kWidth][column % kWidth]);
      }
    }
    // A look, not a change.
    EXPECT_EQ(evict.op.rings[0].head, head);
    EXPECT_EQ(evict.op.rings[0].count, held);
  }
}

TEST(RingEvict, PadsTheRowsThatExceedTheRingInFront) {
  std::mt19937 random(12);
  for (int round = 0; round < 400; ++round) {
    const uint32_t group = 1 + random() % 6;
    const uint32_t capacity = 1 + random() % 8;
    const uint32_t max_rows = 1 + random() % 20;
    const uint32_t only_full = round % 3 == 0 ? 1 + random() % max_rows : 0;
    Evict evict(round % 2 == 0 ? DataType::kF32 : DataType::kI8, capacity, group, max_rows);
    evict.options.pad_front = true;
    evict.options.only_full = only_full;
    // Exactly the room that the worst case needs; one row less is refused.
    uint32_t most = 1;
    for (uint32_t e = 0; e <= max_rows; ++e) {
      if (only_full == 0 || e <= only_full) most = std::max(most, (e + e % group) / group);
    }
    TestTensor groups = f32_tensor("groups", most, group * kWidth);
    evict.op.outputs = {&groups.with_symbol(1)};
    evict.op.symbol_maxima[1] = most;
    const uint32_t head = random() % capacity, held = random() % (capacity + 1);
    const uint32_t count = only_full != 0 && round % 2 == 0 ? only_full : random() % (max_rows + 1);
    SCOPED_TRACE(::testing::Message()
                 << "round " << round << " capacity " << capacity << " group " << group << " head "
                 << head << " held " << held << " new " << count << " full " << only_full);
    fill_uniform(evict.rows, random());
    fill_uniform(evict.memory, random());
    evict.op.symbols[0] = count;
    evict.op.rings[0] = {head, held};
    ASSERT_EQ(evict.bind(), Status::kOk) << evict.op.message();
    ASSERT_EQ(evict.op.run(), Status::kOk) << evict.op.message();

    const uint32_t excess = held + count > capacity ? held + count - capacity : 0;
    std::vector<std::vector<float>> line(excess % group, std::vector<float>(kWidth));
    for (uint32_t r = 0; r < excess; ++r) {
      std::vector<float> row(kWidth);
      for (uint32_t d = 0; d < kWidth; ++d) {
        row[d] = static_cast<float>(r < held ? evict.memory.value((head + r) % capacity, d)
                                             : evict.rows.value(r - held, d));
      }
      line.push_back(row);
    }
    const bool taken = only_full == 0 || count == only_full;
    const auto expected = taken ? static_cast<uint32_t>(line.size()) / group : 0;
    ASSERT_EQ(evict.op.symbols[1], expected);
    for (uint32_t g = 0; g < expected; ++g) {
      for (uint32_t column = 0; column < group * kWidth; ++column) {
        ASSERT_EQ(groups.f32(g)[column], line[g * group + column / kWidth][column % kWidth]);
      }
    }
    if (most > 1) {
      evict.op.symbol_maxima[1] = most - 1;
      EXPECT_EQ(evict.bind(), Status::kFileCorrupt);
    }
  }
}

TEST(RingEvict, GivesNothingButOfFullRunsWhenToldTo) {
  Evict evict(DataType::kF32, 2, 1, 10);
  evict.options.only_full = 4;
  evict.op.rings[0] = {1, 2};
  fill_uniform(evict.rows, 1);
  fill_uniform(evict.memory, 2);
  ASSERT_EQ(evict.bind(), Status::kOk) << evict.op.message();
  for (uint32_t count : {0u, 3u, 4u, 5u, 10u}) {
    evict.op.symbols = {count, 99};
    ASSERT_EQ(evict.op.run(), Status::kOk);
    EXPECT_EQ(evict.op.symbols[1], count == 4 ? 4u : 0u);
  }
  evict.options.only_full = 11;
  EXPECT_EQ(evict.bind(), Status::kOk) << "more than can come: nothing ever leaves";
}

TEST(RingEvict, GivesAllThatIsHeldWhenToldTo) {
  for (const DataType type : {DataType::kF32, DataType::kI8}) {
    Evict evict(type, 5, 1, 5);
    evict.options.all = true;
    fill_uniform(evict.memory, 3);
    ASSERT_EQ(evict.bind(), Status::kOk) << evict.op.message();
    for (uint32_t held = 0; held <= 5; ++held) {
      evict.op.rings[0] = {3, held};
      evict.op.symbols = {2, 99};
      ASSERT_EQ(evict.op.run(), Status::kOk);
      ASSERT_EQ(evict.op.symbols[1], held);
      for (uint32_t row = 0; row < held; ++row) {
        EXPECT_EQ(evict.groups.f32(row)[1],
                  static_cast<float>(evict.memory.value((3 + row) % 5, 1)));
      }
    }
    evict.op.symbol_maxima[1] = 4;
    EXPECT_EQ(evict.bind(), Status::kFileCorrupt) << "room for less than the ring holds";
  }
  Evict grouped(DataType::kF32, 5, 2, 10);
  grouped.options.all = true;
  EXPECT_EQ(grouped.bind(), Status::kFileCorrupt) << "groups";
}

TEST(RingEvict, BindRefusesWhatAFileMustNotHold) {
  const std::vector<std::pair<const char*, std::function<void(Evict&)>>> breaks = {
      {"no group", [](Evict& e) { e.options.group = 0; }},
      {"a group that the output does not hold", [](Evict& e) { e.options.group = 2; }},
      {"a group of which the width wraps to 32 bits",
       [](Evict& e) {
         e.options.group = 0x80000001u;
         e.memory.rows = e.op.ring_capacities[0] = 0x80000001u;
         e.rows.width = e.memory.width = 2;
         e.groups.width = 2;
       }},
      {"a group larger than the ring",
       [](Evict& e) { e.op.ring_capacities[0] = e.memory.rows = 1; }},
      {"no group with padding",
       [](Evict& e) {
         e.options.group = 0;
         e.options.pad_front = true;
       }},
      {"too little room for full runs",
       [](Evict& e) {
         e.options.only_full = 10;
         e.op.symbol_maxima[1] = 3;
       }},
      {"pinned rows", [](Evict& e) { e.memory.pinned = 1; }},
      {"a missing input", [](Evict& e) { e.op.inputs.pop_back(); }},
      {"no output", [](Evict& e) { e.op.outputs.clear(); }},
      {"rows of integers", [](Evict& e) { e.rows.type = DataType::kI32; }},
      {"rows in a ring", [](Evict& e) { e.rows.ring = 0; }},
      {"rows with too little room", [](Evict& e) { e.rows.rows = 9; }},
      {"rows of another width", [](Evict& e) { e.rows.width = kWidth - 1; }},
      {"a memory without a ring", [](Evict& e) { e.memory.ring = -1; }},
      {"a memory smaller than its ring", [](Evict& e) { e.op.ring_capacities[0] = 9; }},
      {"a memory with a symbol", [](Evict& e) { e.memory.rows_symbol = 0; }},
      {"a memory of integers", [](Evict& e) { e.memory.type = DataType::kI32; }},
      {"a memory in blocks", [](Evict& e) { e.memory.layout = Layout::kBlock8x4; }},
      {"a memory with many scales",
       [](Evict& e) {
         e.memory.type = DataType::kI8;
         e.memory.scale_groups = kWidth;
       }},
      {"an output of integers", [](Evict& e) { e.groups.type = DataType::kI32; }},
      {"an output in a ring", [](Evict& e) { e.groups.ring = 0; }},
      {"an output of another width", [](Evict& e) { e.groups.width = 2 * kWidth; }},
      {"an output without a symbol", [](Evict& e) { e.groups.rows_symbol = -1; }},
      {"an output with the symbol of the rows",
       [](Evict& e) {
         e.groups.rows_symbol = 0;
         e.op.settable_symbols[0] = true;
       }},
      {"a symbol of the caller", [](Evict& e) { e.op.settable_symbols[1] = false; }},
      {"a symbol that goes not far enough", [](Evict& e) { e.op.symbol_maxima[1] = 3; }},
      {"an output with too little room", [](Evict& e) { e.groups.rows = 3; }},
  };
  {
    Evict good(DataType::kF32, 8, 3, 10);
    EXPECT_EQ(good.bind(), Status::kOk) << good.op.message();
  }
  for (const auto& [what, break_it] : breaks) {
    Evict evict(DataType::kF32, 8, 3, 10);
    break_it(evict);
    EXPECT_EQ(evict.bind(), Status::kFileCorrupt) << what;
    EXPECT_STRNE(evict.op.message(), "") << what;
  }
  Evict evict(DataType::kF32, 8, 3, 10);
  evict.op.options(schema::RingPushOptionsT{});
  EXPECT_EQ(evict.op.bind(), Status::kFileCorrupt) << "options of another op";
}

}  // namespace
}  // namespace oxbow
