// Saved states that no session would write, with right checksums: refused as a whole, or gone on with as any session
// would.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "converter/graph.h"
#include "runtime/base/hash.h"
#include "tests/support/built_model.h"

namespace oxbow::testing {
namespace {

using convert::Graph;
using convert::GraphBuilder;

constexpr uint32_t kWidth = 4;
constexpr uint32_t kIds = 3;
constexpr uint32_t kSegment = 4;

// Where things are in a saved state.
constexpr size_t kChecksum = 32, kPosition = 40, kRings = 48;
constexpr size_t head_at(size_t ring) { return kRings + 8 * ring; }
constexpr size_t count_at(size_t ring) { return kRings + 8 * ring + 4; }

uint32_t embed(GraphBuilder& builder, GraphBuilder::Entry entry) {
  entry.vocabulary = kIds;
  entry.max_segment = kSegment;
  builder.begin_entry(entry);
  std::vector<float> table;
  for (uint32_t id = 0; id < kIds; ++id) table.insert(table.end(), kWidth, static_cast<float>(id));
  return builder.embedding(entry.name + ".x", builder.tokens(),
                           builder.weight(entry.name + ".table", kIds, kWidth, table));
}

/// With the states that no step reads, which a converter would leave out.
std::vector<std::byte> whole_file(Graph& graph) {
  graph.model.metadata = std::make_unique<schema::MetadataT>();
  graph.model.metadata->architecture = "test";
  graph.model.task = schema::Task::Encode;
  convert::plan(graph);
  return convert::assemble_file(graph.model, pack_all(graph).data);
}

oxb::Status feed(oxb::Session& session, const std::vector<int32_t>& tokens, size_t entry = 0) {
  std::vector<float> out(tokens.size() * kWidth);
  const oxb_input inputs[] = {{sizeof(oxb_input), "input_ids", tokens.data(), tokens.size()}};
  return session.run_entry(entry, inputs, out, tokens.size());
}

std::vector<std::byte> saved(const oxb::Session& session) {
  std::vector<std::byte> blob(session.state_bytes());
  const oxb::Status status = session.save(blob);
  EXPECT_TRUE(status.ok()) << status.text();
  return blob;
}

/// A copy with another word at `at`, and the checksum that fits.
std::vector<std::byte> changed(std::vector<std::byte> blob, size_t at, uint32_t value) {
  std::memcpy(blob.data() + at, &value, sizeof(value));
  const uint64_t checksum = hash_bytes(blob.data() + kPosition, blob.size() - kPosition);
  std::memcpy(blob.data() + kChecksum, &checksum, sizeof(checksum));
  return blob;
}

void expect_corrupt(oxb::Session& session, const std::vector<std::byte>& blob,
                    const std::string& text) {
  const std::vector<std::byte> before = saved(session);
  const oxb::Status status = session.load(blob);
  EXPECT_EQ(status.code(), OXB_STATE_CORRUPT);
  EXPECT_EQ(status.text(), text);
  EXPECT_EQ(saved(session), before);
}

/// Some rings that the rows of a run enter, all in the same way.
Graph rings(uint32_t count, uint32_t capacity, const convert::RingOptions& ring_options,
            const schema::RingPushOptionsT& push, uint32_t stream = 0) {
  Graph graph;
  GraphBuilder builder(graph);
  const uint32_t x = embed(builder, {.name = "step", .capacity = stream});
  for (uint32_t i = 0; i < count; ++i) {
    const std::string name = "memory" + std::to_string(i);
    builder.ring_push(
        {x}, {builder.ring_state(name, builder.ring(name, capacity, ring_options), kWidth)}, push);
  }
  builder.output("y", x);
  return graph;
}

TEST(HostileState, MemoriesThatTakeTheSameRowsHaveToAgree) {
  schema::RingPushOptionsT push;
  push.first = 2;  // So that tokens do not tell how many rows came.
  Graph graph = rings(3, 8, {}, push);
  const BuiltModel built(whole_file(graph));
  oxb::Session session = built.session();
  ASSERT_TRUE(feed(session, {1, 2, 1}).ok());
  const std::vector<std::byte> good = saved(session);
  EXPECT_TRUE(session.load(good).ok());
  for (const size_t at : {count_at(1), head_at(1)}) {
    expect_corrupt(session, changed(good, at, 1),
                   "the state's memories 'memory0' and 'memory1' take the same rows and do not "
                   "agree");
  }
  expect_corrupt(session, changed(good, count_at(0), 8),
                 "the state's memories 'memory0' and 'memory1' take the same rows and do not "
                 "agree");
  // All of them alike: another stream, which could have been.
  std::vector<std::byte> other = good;
  for (size_t ring = 0; ring < 3; ++ring) other = changed(other, count_at(ring), 1);
  EXPECT_TRUE(session.load(other).ok());
}

TEST(HostileState, AMemoryHasToFitTheNumberOfTokens) {
  Graph graph = rings(1, 4, {}, {});
  const BuiltModel built(whole_file(graph));
  oxb::Session session = built.session();
  for (int run = 0; run < 2; ++run) ASSERT_TRUE(feed(session, {1, 2, 1}).ok());
  const std::vector<std::byte> good = saved(session);
  const std::string text = "the state's memory 'memory0' does not fit a stream of 6 tokens";
  expect_corrupt(session, changed(good, count_at(0), 3), text);
  expect_corrupt(session, changed(good, head_at(0), 1), text);
  expect_corrupt(session, changed(good, kPosition, 5),
                 "the state's memory 'memory0' does not fit a stream of 5 tokens");
  expect_corrupt(session, changed(good, count_at(0), 5),
                 "the state's memory 'memory0' is out of range");
}

TEST(HostileState, WhateverAStreamWasCutIntoItsStateIsTaken) {
  std::mt19937 random(7);
  for (const uint32_t group : {1u, 2u, 3u, 5u}) {
    for (const uint32_t pinned : {0u, 2u}) {
      if (group != 1 && pinned != 0) continue;
      for (const uint32_t initial : {0u, 1u, 5u}) {
        schema::RingPushOptionsT push;
        push.group = group;
        Graph graph = rings(2, 5, {.pinned = pinned, .initial_rows = initial}, push);
        const BuiltModel built(whole_file(graph));
        oxb::Session session = built.session(), other = built.session();
        for (int run = 0; run < 20; ++run) {
          ASSERT_TRUE(feed(session, std::vector<int32_t>(1 + random() % kSegment, 1)).ok());
          const oxb::Status status = other.load(saved(session));
          EXPECT_TRUE(status.ok()) << status.text() << ": groups of " << group << ", " << pinned
                                   << " pinned, " << initial << " at first";
        }
      }
    }
  }
}

TEST(HostileState, NoStreamIsLongerThanTheModelTakes) {
  schema::RingPushOptionsT push;
  push.first = 2;
  Graph short_graph = rings(1, 4, {}, push, 8), endless_graph = rings(1, 4, {}, push);
  const BuiltModel short_model(whole_file(short_graph)), endless(whole_file(endless_graph));
  oxb::Session session = short_model.session(), other = endless.session();
  ASSERT_TRUE(session.load(changed(saved(session), kPosition, 8)).ok());
  EXPECT_EQ(feed(session, {1}).code(), OXB_STREAM_FULL);
  expect_corrupt(session, changed(saved(session), kPosition, 9),
                 "the state has had 9 tokens, the model takes 8");
  ASSERT_TRUE(other.load(changed(saved(other), kPosition, UINT32_MAX)).ok());
  EXPECT_TRUE(feed(other, {1}).ok());
  EXPECT_EQ(other.load(changed(saved(other), kPosition + 4, 0x80000000)).code(), OXB_STATE_CORRUPT);
}

/// A ring of two states, of which a push leaves one out.
Graph left_out(bool numbers) {
  Graph graph;
  GraphBuilder builder(graph);
  const uint32_t ring = builder.ring("memory", 4);
  const uint32_t width = numbers ? 1 : kWidth;
  const uint32_t x = embed(builder, {.name = "both"});
  const uint32_t a = builder.ring_state("a", ring, width), b = builder.ring_state("b", ring, width);
  if (numbers) {
    for (const uint32_t state : {a, b}) {
      graph.tensor(state).type = schema::DataType::I32;
      graph.tensor(state).limit = kIds;
    }
  }
  const uint32_t rows = numbers ? builder.tokens() : x;
  builder.ring_push({rows, rows}, {a, b});
  builder.output("y", x);
  const uint32_t one = embed(builder, {.name = "one"});
  schema::RingPushOptionsT replace;
  replace.replace = true;
  builder.ring_push({numbers ? builder.tokens() : one}, {a}, replace);
  builder.output("z", one);
  return graph;
}

TEST(HostileState, NumbersThatNoRowHoldsYetAreCheckedToo) {
  Graph graph = left_out(true);
  const BuiltModel built(whole_file(graph));
  ASSERT_TRUE(built.status().ok()) << built.status().text();
  oxb::Session session = built.session();
  const std::vector<std::byte> good = saved(session);
  // The last row of each state, behind an empty ring; the states lie where they please.
  size_t refused = 0;
  for (size_t at = kRings + 8; at + 4 <= good.size(); at += 4) {
    const oxb::Status status = session.load(changed(good, at, 1000));
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), OXB_STATE_CORRUPT);
    ++refused;
  }
  EXPECT_EQ(refused, 8u) << "two states of four rows";
}

TEST(HostileState, RowsThatAPushLeavesOutAreSavedWithTheOthers) {
  Graph graph = left_out(false);
  const BuiltModel built(whole_file(graph));
  oxb::Session session = built.session(), other = built.session();
  ASSERT_TRUE(feed(session, {1, 2, 1, 2}).ok());
  ASSERT_TRUE(feed(session, {2}, 1).ok());
  ASSERT_TRUE(other.load(saved(session)).ok());
  // The state that is left out shows rows that were not its ring's when it was saved.
  for (oxb::Session* each : {&session, &other}) ASSERT_TRUE(feed(*each, {1, 1, 1}, 1).ok());
  EXPECT_EQ(read_tensor(session, "b"), read_tensor(other, "b"));
  EXPECT_EQ(read_tensor(session, "a"), read_tensor(other, "a"));
}

TEST(HostileState, ABorrowerSeesNoRowsThatItsLenderNoLongerHas) {
  Graph graph;
  GraphBuilder builder(graph);
  const uint32_t encoded = embed(builder, {.name = "encode", .starts = true});
  const uint32_t state =
      builder.ring_state("memory", builder.ring("memory", 4, {.shared = true}), kWidth);
  builder.ring_push({encoded}, {state});
  builder.output("y", encoded);
  const uint32_t x = embed(builder, {.name = "step"});
  builder.output("z", x);
  const BuiltModel built(whole_file(graph));
  oxb::Session lender = built.session();
  ASSERT_TRUE(feed(lender, {2, 2, 2}, 0).ok());
  oxb::Session borrower = built.session(&lender);
  ASSERT_TRUE(feed(borrower, {1}, 1).ok());
  const std::vector<std::byte> blob = saved(borrower);
  ASSERT_TRUE(feed(lender, {1}, 0).ok());
  // With what the lender held when this was saved, and with more than that.
  for (const uint32_t count : {3u, 4u, UINT32_MAX}) {
    ASSERT_TRUE(borrower.load(changed(blob, count_at(0), count)).ok());
    EXPECT_EQ(read_tensor(borrower, "memory"), std::vector<float>(kWidth, 1.0f));
  }
}

}  // namespace
}  // namespace oxbow::testing
