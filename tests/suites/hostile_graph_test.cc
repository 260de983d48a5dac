// Graphs that a converter would not write: names that lie, steps that disagree.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "converter/graph.h"
#include "tests/support/built_model.h"

namespace oxbow::testing {
namespace {

using convert::Graph;
using convert::GraphBuilder;
using schema::OpCode;

constexpr uint32_t kWidth = 4;
constexpr uint32_t kIds = 3;

uint32_t embed(GraphBuilder& builder, const std::string& entry) {
  builder.begin_entry({.name = entry, .vocabulary = kIds, .max_segment = 4});
  std::vector<float> table;
  for (uint32_t id = 0; id < kIds; ++id) table.insert(table.end(), kWidth, static_cast<float>(id));
  return builder.embedding(entry + ".x", builder.tokens(),
                           builder.weight(entry + ".table", kIds, kWidth, table));
}

/// Text of the refusal of a model with a mask beside its tokens, after a change.
std::string refusal(const std::function<void(schema::ModelT&)>& edit) {
  Graph graph;
  GraphBuilder builder(graph);
  const uint32_t x = embed(builder, "step");
  builder.output("y", builder.mask_rows("masked", x, builder.input("mask", 2, 1)));
  build_file(graph);
  edit(graph.model);
  const BuiltModel built(convert::assemble_file(graph.model, std::vector<std::byte>(4096)));
  EXPECT_EQ(built.status().code(), OXB_FILE_CORRUPT) << built.status().text();
  return built.status().text();
}

schema::TensorT& find(schema::ModelT& model, const std::string& name) {
  for (const auto& tensor : model.tensors) {
    if (tensor->name == name) return *tensor;
  }
  throw std::runtime_error("no tensor " + name);
}

TEST(HostileGraph, TwoInputsOfOneNameAreRefused) {
  EXPECT_EQ(refusal([](auto& model) { find(model, "mask").name = "input_ids"; }),
            "entry point 'step': two inputs of one name");
}

TEST(HostileGraph, AGeneratorThatGivesOtherTokensThanItTakesIsRefused) {
  for (const schema::Task task : {schema::Task::Generate, schema::Task::Translate}) {
    EXPECT_EQ(refusal([&](auto& model) { model.task = task; }),
              "a model that generates takes 3 tokens but gives logits for 4");
  }
}

TEST(HostileGraph, BlocksThatRowsCannotBeTurnedInAreRefused) {
  for (const uint32_t block : {1u, 4u, 16u, 24u, 512u, 1024u, 65536u, UINT32_MAX}) {
    const std::string text = refusal([&](auto& model) { find(model, "step.x").hadamard = block; });
    EXPECT_NE(text.find("hadamard must be a power of two"), std::string::npos) << text;
  }
  const std::string text = refusal([](auto& model) { find(model, "step.table").hadamard = 16; });
  EXPECT_NE(text.find("hadamard is for activations"), std::string::npos) << text;
}

TEST(HostileGraph, NamesWithControlCharactersAreRefusedAndNotShown) {
  const std::string nul("input_ids\0b", 11);
  for (const std::string& name :
       {nul, std::string("\x1b[2J"), std::string("a\nb"), std::string(), std::string("a\u009b2J"),
        std::string("a\x9b"
                    "2J"),
        std::string("\xe4\xb8"), std::string("\xed\xa0\x80"), std::string("a\u202e")}) {
    const std::string text = refusal([&](auto& model) { find(model, "mask").name = name; });
    EXPECT_NE(text.find("its name is empty or has control characters"), std::string::npos) << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
  }
  refusal([](auto& model) { model.symbols[0]->name = "\x1b[2J"; });
  refusal([](auto& model) { model.entry_points[0]->name = "\x1b[2J"; });
}

TEST(HostileGraph, TwoEntryPointsOfOneNameAreRefused) {
  const std::string text = refusal([](auto& model) {
    auto again = std::make_unique<schema::EntryPointT>(*model.entry_points[0]);
    model.entry_points.push_back(std::move(again));
  });
  EXPECT_NE(text.find("another has its name"), std::string::npos) << text;
}

/// Two memories whose rows all leave, counted by one symbol and added.
Graph two_memories(uint32_t first_rows, uint32_t second_rows) {
  Graph graph;
  GraphBuilder builder(graph);
  const uint32_t x = embed(builder, "step");
  const uint32_t symbol = builder.symbol("left", 4);
  schema::RingEvictOptionsT all;
  all.all = true;
  std::vector<uint32_t> left;
  for (const uint32_t rows : {first_rows, second_rows}) {
    const std::string name = "memory" + std::to_string(left.size());
    const uint32_t state =
        builder.ring_state(name, builder.ring(name, 4, {.initial_rows = rows}), kWidth);
    left.push_back(builder.ring_evict(name + ".left", x, state, symbol, all));
  }
  builder.output("y", x);
  builder.output("sum", builder.add("both", left[0], left[1]));
  return graph;
}

TEST(HostileGraph, StepsThatCountRowsDifferentlyEndTheRun) {
  const int32_t id = 1;
  std::vector<float> out(kWidth);
  Graph agree = two_memories(2, 2), differ = two_memories(2, 3);
  const BuiltModel good(build_file(agree)), bad(build_file(differ));
  oxb::Session session = good.session(), refusing = bad.session();
  ASSERT_TRUE(session.run({&id, 1}, out).ok());
  EXPECT_EQ(read_tensor(session, "sum"), std::vector<float>(2 * kWidth, 0.0f));
  const oxb::Status status = refusing.run({&id, 1}, out);
  EXPECT_EQ(status.code(), OXB_FILE_CORRUPT);
  EXPECT_STREQ(status.text(), "tensor 'memory1.left': 3 rows, an earlier step gave 2");
}

TEST(HostileGraph, RowsMayNotBeCountedAfterTheyWereUsed) {
  Graph graph = two_memories(2, 2);
  build_file(graph);
  // Writes no rows, for nobody has counted any, and is read when there are some.
  auto early = std::make_unique<schema::StepT>();
  early->op = OpCode::TakeRows;
  schema::EntryPointT& entry = graph.main_entry();
  const uint32_t left = entry.steps.back()->inputs[0];
  auto tensor = std::make_unique<schema::TensorT>(graph.tensor(left));
  tensor->name = "early";
  tensor->offset = graph.model.plan->activations;
  graph.model.plan->activations += 4096;
  early->outputs = {static_cast<uint32_t>(graph.model.tensors.size())};
  early->inputs = {entry.steps[0]->outputs[0]};
  graph.model.tensors.push_back(std::move(tensor));
  entry.steps.insert(entry.steps.begin() + 1, std::move(early));
  const BuiltModel built(convert::assemble_file(graph.model, std::vector<std::byte>(4096)));
  EXPECT_EQ(built.status().code(), OXB_FILE_CORRUPT);
  EXPECT_NE(std::string(built.status().text()).find("row symbol of its own"), std::string::npos)
      << built.status().text();
}

/// "fill" pushes to both states of a ring, "step" to one and shows the other.
void expect_forgotten(bool has_initial) {
  Graph graph;
  GraphBuilder builder(graph);
  const uint32_t filled = embed(builder, "fill");
  const uint32_t ring = builder.ring("memory", 4);
  const uint32_t a = builder.ring_state("a", ring, kWidth);
  const uint32_t initial =
      has_initial ? builder.weight("initial", 1, kWidth, {5, 6, 7, 8}) : GraphBuilder::kNone;
  const uint32_t b = builder.ring_state("b", ring, kWidth, initial);
  builder.ring_push({filled, filled}, {a, b});
  builder.output("filled", filled);
  const uint32_t x = embed(builder, "step");
  schema::RingEvictOptionsT all;
  all.all = true;
  const uint32_t symbol = builder.symbol("left", 4);
  const uint32_t left_a = builder.ring_evict("left_a", x, a, symbol, all);
  const uint32_t left_b = builder.ring_evict("left_b", x, b, symbol, all);
  builder.ring_push({x}, {a});
  builder.output("y", x);
  builder.output("shown_a", left_a);
  builder.output("shown_b", left_b);
  const BuiltModel built(build_file(graph));
  oxb::Session session = built.session();
  const std::vector<int32_t> secret = {2, 2, 2, 2}, tokens = {1, 1};
  std::vector<float> out(4 * kWidth);
  const oxb_input fill[] = {{sizeof(oxb_input), "input_ids", secret.data(), secret.size()}};
  const oxb_input step[] = {{sizeof(oxb_input), "input_ids", tokens.data(), tokens.size()}};
  ASSERT_TRUE(session.run_entry(0, fill, out, 4).ok());
  session.reset();
  for (int i = 0; i < 2; ++i) {
    const oxb::Status status = session.run_entry(1, step, out, 2);
    ASSERT_TRUE(status.ok()) << status.text();
  }
  EXPECT_EQ(read_tensor(session, "shown_a"), std::vector<float>(2 * kWidth, 1.0f));
  EXPECT_EQ(read_tensor(session, "shown_b"), std::vector<float>(2 * kWidth, 0.0f));
}

TEST(HostileGraph, RowsThatAPushLeftOutHoldNothingOfAnEarlierStream) {
  expect_forgotten(false);
  expect_forgotten(true);
}

}  // namespace
}  // namespace oxbow::testing
