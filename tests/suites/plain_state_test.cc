// States that no ring moves: what a recurrence keeps between runs.

#include <gtest/gtest.h>

#include <cstring>
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
using MakeState = std::function<uint32_t(GraphBuilder&)>;

void add_step(Graph& graph, OpCode op, std::vector<uint32_t> inputs,
              std::vector<uint32_t> outputs) {
  auto step = std::make_unique<schema::StepT>();
  step->op = op;
  step->inputs = std::move(inputs);
  step->outputs = std::move(outputs);
  graph.main_entry().steps.push_back(std::move(step));
}

/// Adds the first `rows` tokens' embeddings, (id, id, ...), to the state "sum" in place, and gives that.
Graph adder(const MakeState& make_state) {
  Graph graph;
  GraphBuilder builder(graph);
  builder.begin_entry({.vocabulary = kIds, .max_segment = 2});
  std::vector<float> values;
  for (uint32_t id = 0; id < kIds; ++id)
    values.insert(values.end(), kWidth, static_cast<float>(id));
  const uint32_t x =
      builder.embedding("x", builder.tokens(), builder.weight("table", kIds, kWidth, values));
  const uint32_t state = make_state(builder);
  const uint32_t rows = graph.tensor(state).rows;
  const uint32_t taken = builder.first_row("taken", x);
  graph.tensor(taken).rows = rows;
  add_step(graph, OpCode::Add, {state, taken}, {state});
  builder.output("logits", state);
  return graph;
}

std::vector<float> run(oxb::Session& session, const std::vector<int32_t>& ids) {
  std::vector<float> out(ids.size() * kWidth);
  const oxb::Status status = session.run(ids, out);
  EXPECT_TRUE(status.ok()) << status.text();
  return out;
}

uint32_t one_row(GraphBuilder& builder) {
  return builder.state("sum", 1, kWidth, builder.weight("start", 1, kWidth, {1, 2, 3, 4}));
}

TEST(PlainState, BeginsWithItsInitialValuesAndDoesSoAgainAfterAReset) {
  Graph graph = adder(one_row);
  const BuiltModel built(build_file(graph));
  oxb::Session session = built.session();
  EXPECT_EQ(read_tensor(session, "sum"), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(run(session, {2}), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(run(session, {1}), (std::vector<float>{4, 5, 6, 7}));
  EXPECT_EQ(read_tensor(session, "sum"), (std::vector<float>{4, 5, 6, 7}));
  session.reset();
  EXPECT_EQ(run(session, {2}), (std::vector<float>{3, 4, 5, 6}));
}

TEST(PlainState, MayBeginWithARowForEach) {
  Graph graph = adder([](GraphBuilder& builder) {
    return builder.state("sum", 2, kWidth,
                         builder.weight("start", 2, kWidth, {1, 2, 3, 4, 5, 6, 7, 8}));
  });
  const BuiltModel built(build_file(graph));
  oxb::Session session = built.session();
  EXPECT_EQ(read_tensor(session, "sum"), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(run(session, {1, 2}), (std::vector<float>{2, 3, 4, 5, 7, 8, 9, 10}));
}

TEST(PlainState, MayBeginWithOneRowForAllOneValueOrZeros) {
  const std::pair<MakeState, std::vector<float>> cases[] = {
      {[](GraphBuilder& b) {
         return b.state("sum", 2, kWidth, b.weight("start", 1, kWidth, {1, 2, 3, 4}));
       },
       {1, 2, 3, 4, 1, 2, 3, 4}},
      {[](GraphBuilder& b) { return b.constant_state("sum", 2, kWidth, -1e38f); },
       std::vector<float>(8, -1e38f)},
      {[](GraphBuilder& b) { return b.constant_state("sum", 2, kWidth, 0.0f); },
       std::vector<float>(8, 0.0f)},
      {[](GraphBuilder& b) { return b.state("sum", 2, kWidth); }, std::vector<float>(8, 0.0f)},
  };
  for (const auto& [make, values] : cases) {
    Graph graph = adder(make);
    const BuiltModel built(build_file(graph));
    oxb::Session session = built.session();
    EXPECT_EQ(read_tensor(session, "sum"), values);
    run(session, {1, 1});
    session.reset();
    EXPECT_EQ(read_tensor(session, "sum"), values);
  }
}

TEST(PlainState, IsSavedLoadedRewoundAndCopied) {
  Graph graph = adder(one_row);
  const BuiltModel built(build_file(graph));
  oxb::Session session = built.session(), other = built.session();
  oxb::Session borrower = built.session(&session);
  EXPECT_EQ(read_tensor(borrower, "sum"), (std::vector<float>{1, 2, 3, 4}));
  run(session, {2});
  std::vector<std::byte> saved(session.state_bytes()), checkpoint(session.state_bytes());
  ASSERT_TRUE(session.save(saved).ok());
  ASSERT_TRUE(session.checkpoint(checkpoint).ok());
  ASSERT_TRUE(other.load(saved).ok());
  ASSERT_TRUE(borrower.copy(session).ok());
  const std::vector<float> expected = run(session, {1});
  EXPECT_EQ(run(other, {1}), expected);
  EXPECT_EQ(run(borrower, {1}), expected);
  ASSERT_TRUE(session.rewind(checkpoint).ok());
  EXPECT_EQ(run(session, {1}), expected);
}

TEST(PlainState, StaysFloatInAnInt8File) {
  Graph graph = adder(one_row);
  const BuiltModel built(build_file(graph, true));
  oxb::Session session = built.session();
  EXPECT_EQ(read_tensor(session, "sum"), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_NEAR(run(session, {2})[0], 3.0f, 0.02f);
}

TEST(PlainState, WithImpossibleInitialValuesIsRefused) {
  const auto refused = [](const std::function<void(schema::TensorT&, schema::TensorT&)>& edit) {
    Graph graph = adder(one_row);
    build_file(graph);
    schema::TensorT *state = nullptr, *start = nullptr;
    for (const auto& tensor : graph.model.tensors) {
      if (tensor->name == "sum") state = tensor.get();
      if (tensor->name == "start") start = tensor.get();
    }
    edit(*state, *start);
    const std::vector<std::byte> data(4096);
    const BuiltModel built(convert::assemble_file(graph.model, data));
    EXPECT_EQ(built.status().code(), OXB_FILE_CORRUPT);
    return std::string(built.status().text());
  };
  EXPECT_NE(refused([](auto& state, auto&) { state.initial = 1000; }).find("out of range"),
            std::string::npos);
  EXPECT_NE(refused([](auto& state, auto&) { state.initial = 0; }).find("F32 weight"),
            std::string::npos)
      << "the tokens are no weight";
  EXPECT_NE(refused([](auto&, auto& start) {
              start.width = 2;
              start.rows = 2;
            }).find("F32 weight"),
            std::string::npos);
  EXPECT_NE(refused([](auto& state, auto&) {
              state.type = schema::DataType::I8;
              state.scale_groups = 1;
              state.bytes = 20;
            }).find("F32"),
            std::string::npos);
}

}  // namespace
}  // namespace oxbow::testing
