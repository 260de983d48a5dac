#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "ops/ring_push/ring_push.h"
#include "ops/testing/op_runner.h"
#include "runtime/base/quantize.h"
#include "runtime/base/ring_rule.h"

namespace oxbow {
namespace {

using testing::f32_tensor;
using testing::fill_uniform;
using testing::i32_tensor;
using testing::i8_tensor;
using testing::OpRunner;
using testing::TestTensor;

TEST(RingRule, NeverLeavesMoreThanTheCapacityNorTakesMoreThanThereIs) {
  for (uint64_t group = 1; group <= 5; ++group) {
    for (uint64_t capacity = 1; capacity <= 12; ++capacity) {
      if (!ring_takes_group(capacity, group)) continue;
      for (uint64_t held = 0; held <= capacity; ++held) {
        for (uint64_t added = 0; added <= 30; ++added) {
          const RingStep step = ring_step(held, added, capacity, group);
          EXPECT_EQ(step.leaving, step.groups * group);
          EXPECT_EQ(step.leaving + step.staying, held + added);
          EXPECT_LE(step.staying, capacity);
          // No group leaves without need.
          EXPECT_TRUE(step.groups == 0 || step.staying + group > capacity);
          EXPECT_LE(step.groups, (added + group - 1) / group);
        }
      }
    }
  }
}

TEST(RingRule, LargeNumbersDoNotWrap) {
  const uint64_t most = 0x7fffffff;
  const RingStep step = ring_step(most, 0xffffffffu, most, 2);
  EXPECT_EQ(step.leaving, 0x100000000u);
  EXPECT_EQ(step.staying, most - 1);
  EXPECT_FALSE(ring_takes_group(4, 6));
  EXPECT_TRUE(ring_takes_group(4, 5));
  EXPECT_FALSE(ring_takes_group(0, 1));
  EXPECT_FALSE(ring_takes_group(4, 0));
}

/// A ring with a float state, an int8 state fed in float and an int8 state fed in int8.
struct Push {
  Push(uint32_t capacity, uint32_t group, uint32_t max_rows)
      : rows{f32_tensor("f32_rows", max_rows, 5), f32_tensor("quantised_rows", max_rows, 12),
             i8_tensor("i8_rows", max_rows, 18, 2)},
        states{f32_tensor("f32_state", capacity, 5), i8_tensor("quantised_state", capacity, 12, 3),
               i8_tensor("i8_state", capacity, 18, 2)},
        op(bind_ring_push) {
    op.symbols = {0};
    op.symbol_maxima = {max_rows};
    op.settable_symbols = {false};
    op.rings = {{0, 0}};
    op.ring_capacities = {capacity};
    for (TestTensor& t : rows) op.inputs.push_back(&t.with_symbol(0));
    for (TestTensor& t : states) op.outputs.push_back(&t.with_ring(0));
    options.group = group;
  }
  Status bind() {
    op.options(options);
    return op.bind();
  }
  TestTensor rows[3], states[3];
  OpRunner op;
  schema::RingPushOptionsT options;
};

/// The bytes of one row, scales included.
std::vector<std::byte> row_bytes_of(const Tensor& t, size_t row) {
  const std::byte* data = t.data + row * t.stride();
  std::vector<std::byte> bytes(data, data + t.stride());
  if (t.scale_groups != 0) {
    const auto* scales = reinterpret_cast<const std::byte*>(t.row_scales(row));
    bytes.insert(bytes.end(), scales, scales + t.scale_groups * sizeof(float));
  }
  return bytes;
}

TEST(RingPush, KeepsTheNewestRowsOfAnyStream) {
  std::mt19937 random(7);
  testing::Buffer memory(ThreadPool::bytes(2));
  ThreadPool* pool = nullptr;
  ASSERT_EQ(ThreadPool::create(memory.data(), 2, nullptr, &pool), Status::kOk);
  for (int round = 0; round < 60; ++round) {
    const uint32_t group = 1 + random() % 5;
    const uint32_t capacity = std::max<uint32_t>(1, group - 1) + random() % 12;
    const uint32_t max_rows = 1 + random() % 30;
    SCOPED_TRACE(::testing::Message() << "round " << round << " capacity " << capacity << " group "
                                      << group << " rows up to " << max_rows);
    Push push(capacity, group, max_rows);
    push.op.pool = round % 2 == 0 ? pool : nullptr;
    push.op.rings[0].head = random() % capacity;
    ASSERT_EQ(push.bind(), Status::kOk) << push.op.message();
    std::deque<std::vector<std::byte>> model[3];
    for (int step = 0; step < 20; ++step) {
      const uint32_t count = random() % (max_rows + 1);
      push.op.symbols[0] = count;
      for (int i = 0; i < 3; ++i) {
        fill_uniform(push.rows[i], random());
        for (uint32_t row = 0; row < count; ++row) {
          if (i != 1) {
            model[i].push_back(row_bytes_of(push.rows[i], row));
          } else {
            TestTensor quantised = i8_tensor("expected", 1, 12, 3);
            quantize_row(push.rows[1].f32(row), 12, 3, quantised.i8(), quantised.row_scales(0));
            model[1].push_back(row_bytes_of(quantised, 0));
          }
        }
        while (model[i].size() > capacity) {
          for (uint32_t g = 0; g < group; ++g) model[i].pop_front();
        }
      }
      ASSERT_EQ(push.op.run(), Status::kOk);
      const RingPosition ring = push.op.rings[0];
      ASSERT_LT(ring.head, capacity);
      ASSERT_EQ(ring.count, model[0].size());
      for (int i = 0; i < 3; ++i) {
        for (size_t row = 0; row < ring.count; ++row) {
          ASSERT_EQ(row_bytes_of(push.states[i], (ring.head + row) % capacity), model[i][row])
              << "state " << i << " row " << row << " after step " << step;
        }
      }
    }
  }
  ThreadPool::destroy(pool);
}

TEST(RingPush, KeepsThePinnedRowsForEver) {
  std::mt19937 random(8);
  testing::Buffer memory(ThreadPool::bytes(2));
  ThreadPool* pool = nullptr;
  ASSERT_EQ(ThreadPool::create(memory.data(), 2, nullptr, &pool), Status::kOk);
  for (int round = 0; round < 80; ++round) {
    const uint32_t pinned = random() % 6;
    const uint32_t capacity = pinned + 1 + random() % 8;
    const uint32_t max_rows = 1 + random() % 20;
    SCOPED_TRACE(::testing::Message() << "round " << round << " capacity " << capacity << " pinned "
                                      << pinned << " rows up to " << max_rows);
    TestTensor rows = i32_tensor("rows", max_rows, 3), state = i32_tensor("state", capacity, 3);
    OpRunner op(bind_ring_push);
    op.inputs = {&rows.with_symbol(0)};
    op.outputs = {&state.with_ring(0)};
    state.pinned = pinned;
    op.symbols = {0};
    op.symbol_maxima = {max_rows};
    op.rings = {{0, 0}};
    op.ring_capacities = {capacity};
    op.pool = round % 2 == 0 ? pool : nullptr;
    op.options(schema::RingPushOptionsT{});
    ASSERT_EQ(op.bind(), Status::kOk) << op.message();
    std::deque<int32_t> model;
    int32_t next = 0;
    for (int step = 0; step < 20; ++step) {
      const uint32_t count = random() % (max_rows + 1);
      op.symbols[0] = count;
      for (uint32_t row = 0; row < max_rows; ++row) {
        // Rows beyond the actual ones must not be seen.
        if (row < count) model.push_back(next);
        for (uint32_t i = 0; i < 3; ++i) rows.i32(row)[i] = row < count ? next : -7;
        if (row < count) ++next;
      }
      while (model.size() > capacity) model.erase(model.begin() + pinned);
      ASSERT_EQ(op.run(), Status::kOk);
      const RingPosition ring = op.rings[0];
      ASSERT_LT(ring.head, capacity - pinned);
      ASSERT_EQ(ring.count, model.size());
      for (size_t row = 0; row < ring.count; ++row) {
        const size_t slot = ring_slot(ring, capacity, pinned, row);
        for (uint32_t i = 0; i < 3; ++i) ASSERT_EQ(state.i32(slot)[i], model[row]) << row;
        if (row < pinned) {
          ASSERT_EQ(slot, row);
        }
      }
    }
  }
  ThreadPool::destroy(pool);
}

TEST(RingPush, TakesOnlyFullRunsWhenToldTo) {
  Push push(8, 1, 4);
  push.options.only_full = 3;
  push.op.rings[0] = {2, 7};
  for (TestTensor& rows : push.rows) fill_uniform(rows, 5);
  ASSERT_EQ(push.bind(), Status::kOk) << push.op.message();
  for (uint32_t count : {0u, 1u, 2u, 4u}) {
    push.op.symbols[0] = count;
    ASSERT_EQ(push.op.run(), Status::kOk);
    EXPECT_EQ(push.op.rings[0].head, 2u);
    EXPECT_EQ(push.op.rings[0].count, 7u);
  }
  push.op.symbols[0] = 3;
  ASSERT_EQ(push.op.run(), Status::kOk);
  EXPECT_EQ(push.op.rings[0].head, 4u);
  EXPECT_EQ(push.op.rings[0].count, 8u);
  EXPECT_EQ(push.states[0].f32(3)[0], push.rows[0].f32(2)[0]) << "the newest at slot 2 + 7 + 2 - 8";
}

TEST(RingPush, TakesTheFirstRowsOfARunWhenToldTo) {
  Push push(8, 1, 4);
  push.options.first = 2;
  push.op.rings[0] = {2, 7};
  for (TestTensor& rows : push.rows) fill_uniform(rows, 5);
  ASSERT_EQ(push.bind(), Status::kOk) << push.op.message();
  push.op.symbols[0] = 4;
  ASSERT_EQ(push.op.run(), Status::kOk);
  EXPECT_EQ(push.op.rings[0].head, 3u);
  EXPECT_EQ(push.op.rings[0].count, 8u);
  EXPECT_EQ(push.states[0].f32(2)[0], push.rows[0].f32(1)[0]) << "the newest at slot 2 + 7 + 1 - 8";
  push.op.symbols[0] = 1;
  ASSERT_EQ(push.op.run(), Status::kOk);
  EXPECT_EQ(push.op.rings[0].head, 4u);
  EXPECT_EQ(push.states[0].f32(3)[0], push.rows[0].f32(0)[0]) << "all when there are fewer";
}

TEST(RingPush, ReplacesWhatTheRingHeldWhenToldTo) {
  Push push(4, 1, 6);
  push.options.replace = true;
  for (TestTensor& rows : push.rows) fill_uniform(rows, 5);
  ASSERT_EQ(push.bind(), Status::kOk) << push.op.message();
  for (uint32_t count = 0; count <= 6; ++count) {
    push.op.rings[0] = {2, 3};
    push.op.symbols[0] = count;
    ASSERT_EQ(push.op.run(), Status::kOk);
    const RingPosition ring = push.op.rings[0];
    ASSERT_EQ(ring.count, std::min(count, 4u));
    for (uint32_t row = 0; row < ring.count; ++row) {
      EXPECT_EQ(push.states[0].f32(ring_slot(ring, 4, 0, row))[0],
                push.rows[0].f32(count - ring.count + row)[0]);
    }
  }
  for (TestTensor& state : push.states) state.pinned = 1;
  EXPECT_EQ(push.bind(), Status::kFileCorrupt) << "pinned rows";
}

TEST(RingPush, EmptiesTheRingWhenToldTo) {
  Push push(4, 1, 6);
  push.options.clear = true;
  for (TestTensor& rows : push.rows) fill_uniform(rows, 5);
  ASSERT_EQ(push.bind(), Status::kOk) << push.op.message();
  push.op.rings[0] = {2, 3};
  push.op.symbols[0] = 5;
  ASSERT_EQ(push.op.run(), Status::kOk);
  EXPECT_EQ(push.op.rings[0].count, 0u);
  EXPECT_EQ(push.op.rings[0].head, 0u);
  for (TestTensor& state : push.states) state.pinned = 1;
  EXPECT_EQ(push.bind(), Status::kFileCorrupt) << "pinned rows";
}

TEST(RingPush, BindRefusesWhatAFileMustNotHold) {
  const std::vector<std::pair<const char*, std::function<void(Push&)>>> breaks = {
      {"no group", [](Push& p) { p.options.group = 0; }},
      {"a group larger than the ring", [](Push& p) { p.options.group = 10; }},
      {"a group of 2^32 - 1", [](Push& p) { p.options.group = UINT32_MAX; }},
      {"a missing input", [](Push& p) { p.op.inputs.pop_back(); }},
      {"a missing output", [](Push& p) { p.op.outputs.pop_back(); }},
      {"nothing",
       [](Push& p) {
         p.op.inputs.clear();
         p.op.outputs.clear();
       }},
      {"too many states",
       [](Push& p) {
         p.op.inputs.assign(9, &p.rows[0]);
         p.op.outputs.assign(9, &p.states[0]);
       }},
      {"a state without a ring", [](Push& p) { p.states[0].ring = -1; }},
      {"a second state without a ring", [](Push& p) { p.states[1].ring = -1; }},
      {"two rings", [](Push& p) { p.states[2].ring = 1; }},
      {"a state smaller than the ring", [](Push& p) { p.states[1].rows = 7; }},
      {"a state larger than the ring", [](Push& p) { p.states[1].rows = 9; }},
      {"a state with a symbol", [](Push& p) { p.states[0].rows_symbol = 0; }},
      {"a state of integers", [](Push& p) { p.states[0].type = DataType::kI32; }},
      {"integers for an int8 state", [](Push& p) { p.rows[1].type = DataType::kI32; }},
      {"integers above the limit of their state",
       [](Push& p) {
         p.states[0].type = p.rows[0].type = DataType::kI32;
         p.states[0].limit = 5;
         p.rows[0].limit = 6;
       }},
      {"integers without a limit for a state with one",
       [](Push& p) {
         p.states[0].type = p.rows[0].type = DataType::kI32;
         p.states[0].limit = 5;
       }},
      {"groups and pinned rows",
       [](Push& p) {
         for (TestTensor& state : p.states) state.pinned = 2;
       }},
      {"nothing but pinned rows",
       [](Push& p) {
         p.options.group = 1;
         for (TestTensor& state : p.states) state.pinned = 8;
       }},
      {"states that differ in their pinned rows",
       [](Push& p) {
         p.options.group = 1;
         p.states[1].pinned = 2;
       }},
      {"a state in blocks", [](Push& p) { p.states[2].layout = Layout::kBlock8x4; }},
      {"a state with scales that do not divide", [](Push& p) { p.states[1].scale_groups = 5; }},
      {"a state without scales", [](Push& p) { p.states[1].scale_groups = 0; }},
      {"rows of another width", [](Push& p) { p.rows[0].width = 4; }},
      {"rows in blocks", [](Push& p) { p.rows[2].layout = Layout::kBlock8x4; }},
      {"rows in a ring", [](Push& p) { p.rows[0].ring = 0; }},
      {"int8 rows for a float state",
       [](Push& p) {
         p.rows[0].type = DataType::kI8;
         p.rows[0].scale_groups = 1;
       }},
      {"int8 rows with other scales", [](Push& p) { p.rows[2].scale_groups = 3; }},
      {"rows with another symbol", [](Push& p) { p.rows[1].rows_symbol = 1; }},
      {"rows with too little room", [](Push& p) { p.rows[1].rows = 3; }},
      {"rows without a symbol", [](Push& p) { p.rows[1].rows_symbol = -1; }},
  };
  {
    Push good(8, 3, 4);
    EXPECT_EQ(good.bind(), Status::kOk) << good.op.message();
  }
  for (const auto& [what, break_it] : breaks) {
    Push push(8, 3, 4);
    push.op.symbols.push_back(1);
    push.op.symbol_maxima.push_back(4);
    push.op.rings.push_back({});
    push.op.ring_capacities.push_back(8);
    break_it(push);
    EXPECT_EQ(push.bind(), Status::kFileCorrupt) << what;
    EXPECT_STRNE(push.op.message(), "") << what;
  }
  Push push(8, 3, 4);
  push.op.options(schema::RingEvictOptionsT{});
  EXPECT_EQ(push.op.bind(), Status::kFileCorrupt) << "options of another op";
}

TEST(RingPush, KeepsInt8RowsInFourBits) {
  TestTensor rows = i8_tensor("rows", 4, 128, 2);
  TestTensor state("state", DataType::kI4Rows, Layout::kRowMajor, 3, 128, 2);
  fill_uniform(rows, 11);
  OpRunner op(bind_ring_push);
  op.symbols = {4};
  op.symbol_maxima = {4};
  op.settable_symbols = {false};
  op.rings = {{0, 0}};
  op.ring_capacities = {3};
  op.inputs = {&rows.with_symbol(0)};
  op.outputs = {&state.with_ring(0)};
  schema::RingPushOptionsT options;
  options.group = 1;
  op.options(options);
  ASSERT_EQ(op.bind_and_run(), Status::kOk) << op.message();
  for (size_t row = 1; row < 4; ++row) {
    const size_t slot = ring_slot(op.rings[0], 3, 0, row - 1);
    const auto* blocks = reinterpret_cast<const I4RowBlock*>(state.data + slot * state.stride());
    for (size_t b = 0; b < 4; ++b) {
      I4RowBlock expected;
      pack_i4_block(rows.i8(row) + b * kI4RowColumns, &expected);
      EXPECT_EQ(std::memcmp(&expected, blocks + b, sizeof(expected)), 0) << row << " " << b;
    }
    EXPECT_EQ(std::memcmp(state.row_scales(slot), rows.row_scales(row), 2 * sizeof(float)), 0);
  }
  TestTensor floats = f32_tensor("floats", 4, 128);
  op.inputs = {&floats.with_symbol(0)};
  EXPECT_EQ(op.bind(), Status::kFileCorrupt) << "floats are not packed";
}

}  // namespace
}  // namespace oxbow
