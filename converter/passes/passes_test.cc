#include "converter/passes/passes.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "converter/passes/transform.h"
#include "converter/testing/maker.h"
#include "host/lifetimes.h"
#include "host/macs.h"
#include "runtime/base/tensor.h"

namespace oxbow::convert {
namespace {

using schema::DataType;
using schema::OpCode;
using testing::Maker;

constexpr uint32_t kNone = GraphBuilder::kNone;

TEST(Fuse, ActivationThenAdditionGoIntoTheLinearStep) {
  Maker m;
  const uint32_t x = m.embed(4);
  const uint32_t y = m.builder.activate("y", m.builder.linear("l", x, m.matrix(4, 4), kNone),
                                        schema::Activation::Gelu);
  m.finish(m.builder.add("sum", x, y));
  fuse(m.graph);
  EXPECT_EQ(m.ops(), (std::vector<OpCode>{OpCode::Embedding, OpCode::Linear, OpCode::TakeRows,
                                          OpCode::Linear}));
  const schema::StepT& step = *m.graph.main_entry().steps[1];
  EXPECT_EQ(step.options.AsLinearOptions()->activation, schema::Activation::Gelu);
  EXPECT_TRUE(step.options.AsLinearOptions()->has_residual);
  EXPECT_EQ(step.inputs.back(), x);
  EXPECT_EQ(m.graph.tensor(step.outputs[0]).name, "sum");
}

TEST(Fuse, AnActivationAfterTheAdditionStaysWhereItIs) {
  Maker m;
  const uint32_t x = m.embed(4);
  const uint32_t sum = m.builder.add("sum", m.builder.linear("l", x, m.matrix(4, 4), kNone), x);
  m.finish(m.builder.activate("y", sum, schema::Activation::Relu));
  fuse(m.graph);
  EXPECT_EQ(m.ops(), (std::vector<OpCode>{OpCode::Embedding, OpCode::Linear, OpCode::Activate,
                                          OpCode::TakeRows, OpCode::Linear}));
  EXPECT_TRUE(m.graph.main_entry().steps[1]->options.AsLinearOptions()->has_residual);
}

TEST(Fuse, ATensorWithAnotherReaderIsNotFusedAway) {
  Maker m;
  const uint32_t x = m.embed(4);
  const uint32_t l = m.builder.linear("l", x, m.matrix(4, 4), kNone);
  const uint32_t y = m.builder.activate("y", l, schema::Activation::Relu);
  m.finish(m.builder.add("sum", l, y));
  const size_t before = m.ops().size();
  fuse(m.graph);
  EXPECT_EQ(m.ops().size(), before);
}

TEST(Fuse, AKeptTensorIsNotFusedAway) {
  Maker m;
  const uint32_t x = m.embed(4);
  const uint32_t l = m.builder.linear("l", x, m.matrix(4, 4), kNone);
  m.finish(m.builder.activate("y", l, schema::Activation::Relu));
  m.graph.main_entry().kept = {l};
  const size_t before = m.ops().size();
  fuse(m.graph);
  EXPECT_EQ(m.ops().size(), before);
}

TEST(Fuse, AResidualThatIsNotReadyYetIsNotFused) {
  Maker m;
  const uint32_t x = m.embed(4);
  const uint32_t first = m.builder.linear("first", x, m.matrix(4, 4), kNone);
  const uint32_t later = m.norm(x, 4);
  const uint32_t extra = m.norm(later, 4);
  const uint32_t sum = m.builder.add("sum", first, later);
  m.finish(m.builder.add("all", sum, extra));
  const size_t before = m.ops().size();
  fuse(m.graph);
  EXPECT_EQ(m.ops().size(), before);
}

TEST(Fuse, OfTwoLinearStepsTheLaterTakesTheOtherAsResidual) {
  Maker m;
  const uint32_t x = m.embed(4);
  const uint32_t a = m.builder.linear("a", x, m.matrix(4, 4), kNone);
  const uint32_t b = m.builder.linear("b", x, m.matrix(4, 4), kNone);
  m.finish(m.builder.add("sum", b, a));
  fuse(m.graph);
  EXPECT_FALSE(m.graph.main_entry().steps[1]->options.AsLinearOptions()->has_residual);
  EXPECT_TRUE(m.graph.main_entry().steps[2]->options.AsLinearOptions()->has_residual);
  EXPECT_EQ(m.graph.main_entry().steps[2]->inputs.back(), a);
}

TEST(Fuse, WhatReadsOrWritesAStateStaysWhereItIs) {
  Maker m;
  const uint32_t x = m.embed(4);
  const uint32_t state = m.builder.state("state", 8, 4);
  m.graph.tensor(state).rows_symbol = m.graph.tensor(x).rows_symbol;
  const uint32_t l = m.builder.linear("l", x, m.matrix(4, 4), kNone);
  m.finish(m.builder.add("sum", l, state));
  const size_t before = m.ops().size();
  fuse(m.graph);
  EXPECT_EQ(m.ops().size(), before);
}

/// x -> memory of raw rows, keys and values; attention over it.
void add_memory(Maker& m, uint32_t x, uint32_t heads) {
  const uint32_t width = m.graph.tensor(x).width;
  const uint32_t z = m.norm(x, width);
  const uint32_t q = m.builder.linear("q", z, m.matrix(width, width), kNone);
  const uint32_t k = m.builder.linear("k", z, m.matrix(width, width), kNone);
  const uint32_t v = m.builder.linear("v", z, m.matrix(width, width), kNone);
  const uint32_t ring = m.builder.ring("mem", 6);
  const uint32_t raw = m.builder.ring_state("mem", ring, width);
  const uint32_t keys = m.builder.ring_state("mem.k", ring, width);
  const uint32_t values = m.builder.ring_state("mem.v", ring, width);
  const GraphBuilder::Relative relative = {m.matrix(14, width), m.matrix(14, heads),
                                           m.matrix(1, width)};
  GraphBuilder::Attention attention;
  attention.heads = attention.kv_heads = heads;
  attention.sources = {{keys, values}, {k, v}};
  attention.relative = relative;
  const uint32_t a = m.builder.attention("a", q, attention);
  m.builder.ring_push({x, k, v}, {raw, keys, values});
  const uint32_t out = m.builder.linear("out", a, m.matrix(width, width), kNone);
  m.finish(m.builder.add("y", x, out));
}

TEST(RemoveDead, DropsStatesNobodyReadsUnlessTheyAreWanted) {
  for (const bool keep : {false, true}) {
    Maker m;
    const uint32_t x = m.embed(4);
    m.matrix(5, 5);
    m.norm(x, 4);
    m.builder.symbol("unused", 3);
    add_memory(m, x, 2);
    remove_dead(m.graph, keep);
    EXPECT_EQ(m.find("mem") != nullptr, keep);
    EXPECT_NE(m.find("mem.k"), nullptr);
    EXPECT_EQ(m.graph.model.symbols.size(), 2u);
    size_t norms = 0, pushes = 0;
    for (const auto& step : m.graph.main_entry().steps) {
      norms += step->op == OpCode::LayerNorm;
      if (step->op != OpCode::RingPush) continue;
      ++pushes;
      EXPECT_EQ(step->inputs.size(), keep ? 3u : 2u);
      EXPECT_EQ(step->outputs.size(), step->inputs.size());
      EXPECT_EQ(m.graph.tensor(step->outputs.back()).name, "mem.v");
    }
    EXPECT_EQ(norms, 1u);
    EXPECT_EQ(pushes, 1u);
    for (const auto& [index, weight] : m.graph.weights) {
      EXPECT_EQ(m.graph.tensor(index).kind, schema::TensorKind::Weight);
      EXPECT_EQ(weight.rows(), m.graph.tensor(index).rows);
      EXPECT_EQ(weight.width(), m.graph.tensor(index).width);
    }
    EXPECT_EQ(m.graph.tensor(m.graph.main_entry().tokens).kind, schema::TensorKind::Input);
    EXPECT_EQ(m.graph.tensor(m.graph.main_entry().logits).kind, schema::TensorKind::Output);
  }
}

TEST(RemoveDead, AMemoryOnlyItsOwnUpdateReadsIsDead) {
  Maker m;
  const uint32_t x = m.embed(4);
  const uint32_t state = m.builder.ring_state("mem", m.builder.ring("mem", 6), 4);
  schema::RingEvictOptionsT evict;
  schema::RingPushOptionsT push;
  evict.group = push.group = 2;
  const uint32_t leaving =
      m.builder.ring_evict("leaving", x, state, m.builder.symbol("groups", 4), evict);
  const uint32_t other = m.builder.ring_state("other", m.builder.ring("other", 6), 8);
  m.builder.ring_push({leaving}, {other});
  m.builder.ring_push({x}, {state}, push);
  m.finish(x);
  remove_dead(m.graph, false);
  EXPECT_EQ(m.ops(), (std::vector<OpCode>{OpCode::Embedding, OpCode::TakeRows, OpCode::Linear}));
  EXPECT_TRUE(m.graph.model.rings.empty());
}

TEST(RemoveDead, AStepThatIsNeededKeepsAllItsOutputs) {
  Maker m;
  const uint32_t x = m.embed(4);
  const uint32_t state = m.builder.state("state", 1, 4);
  const uint32_t y = m.builder.activate("y", x, schema::Activation::Relu);
  m.graph.main_entry().steps.back()->outputs.push_back(state);
  m.finish(y);
  remove_dead(m.graph, false);
  ASSERT_NE(m.find("state"), nullptr);
  EXPECT_EQ(m.graph.tensor(m.graph.main_entry().steps[1]->outputs[1]).name, "state");
}

TEST(Quantize, ChoosesTypes) {
  Maker m;
  add_memory(m, m.embed(8), 2);
  fuse(m.graph);
  remove_dead(m.graph, true);
  quantize(m.graph, {});
  const auto expect_i8 = [&](const char* name, uint32_t groups) {
    ASSERT_NE(m.find(name), nullptr) << name;
    EXPECT_EQ(m.find(name)->type, DataType::I8) << name;
    EXPECT_EQ(m.find(name)->scale_groups, groups) << name;
  };
  expect_i8("norm", 1);
  expect_i8("a", 1);
  expect_i8("k", 2);
  expect_i8("v", 2);
  expect_i8("mem.k", 2);
  expect_i8("mem.v", 2);
  expect_i8("mem", 1);
  expect_i8("tail.i8", 1);
  for (const char* name : {"x", "q", "y", "tail", "logits"}) {
    EXPECT_EQ(m.find(name)->type, DataType::F32) << name;
  }
  for (const auto& step : m.graph.main_entry().steps) {
    if (step->op == OpCode::Linear) {
      EXPECT_EQ(m.graph.tensor(step->inputs[1]).layout, schema::Layout::Block8x4);
      EXPECT_EQ(m.graph.tensor(step->inputs[0]).type, DataType::I8);
    } else if (step->op == OpCode::Attention) {
      EXPECT_EQ(m.graph.tensor(step->inputs[5]).scale_groups, 2u);
      EXPECT_EQ(m.graph.tensor(step->inputs[6]).type, DataType::F32);
      EXPECT_EQ(m.graph.tensor(step->inputs[7]).type, DataType::F32);
    }
  }
}

TEST(Quantize, WeightsAloneLeaveEverythingElseFloat) {
  Maker m;
  add_memory(m, m.embed(8), 2);
  quantize(m.graph, {.weights = "int8", .activations = false});
  for (const auto& tensor : m.graph.model.tensors) {
    if (tensor->kind != schema::TensorKind::Weight && tensor->name != "input_ids") {
      EXPECT_EQ(tensor->type, DataType::F32) << tensor->name;
    }
  }
  for (const auto& step : m.graph.main_entry().steps) EXPECT_NE(step->op, OpCode::Quantize);
}

TEST(Quantize, OneStepServesAllReadersAndFollowsTheProducer) {
  Maker m;
  const uint32_t x = m.embed(4);
  const uint32_t a = m.builder.linear("a", x, m.matrix(4, 4), kNone);
  const uint32_t b = m.builder.linear("b", x, m.matrix(4, 4), kNone);
  m.finish(m.builder.add("sum", m.builder.add("ab", a, b), x));
  quantize(m.graph, {});
  const std::vector<OpCode> ops = m.ops();
  EXPECT_EQ(ops[1], OpCode::Quantize);
  // One for x, one for the rows that enter the head.
  EXPECT_EQ(std::count(ops.begin(), ops.end(), OpCode::Quantize), 2);
}

TEST(Quantize, EveryReaderOfAPlainStateGetsItsOwnCopy) {
  Maker m;
  const uint32_t x = m.embed(4);
  const uint32_t state = m.builder.state("state", 1, 4);
  m.builder.debug_output(m.builder.linear("a", state, m.matrix(4, 4), kNone));
  auto update = std::make_unique<schema::StepT>();
  update->op = OpCode::TakeRows;
  update->inputs = {x};
  update->outputs = {state};
  m.graph.main_entry().steps.push_back(std::move(update));
  m.finish(m.builder.linear("b", state, m.matrix(4, 4), kNone));
  quantize(m.graph, {});
  EXPECT_EQ(m.find("state")->type, DataType::F32);
  EXPECT_EQ(m.ops(), (std::vector<OpCode>{OpCode::Embedding, OpCode::Quantize, OpCode::Linear,
                                          OpCode::TakeRows, OpCode::Quantize, OpCode::Linear,
                                          OpCode::TakeRows, OpCode::Quantize, OpCode::Linear}));
}

TEST(Quantize, ATiedTableIsStoredInBothLayouts) {
  Maker m;
  const uint32_t table = m.matrix(16, 4);
  const uint32_t x = m.builder.embedding("x", m.builder.tokens(), table);
  m.builder.logits(m.builder.take_rows("tail", x), table, kNone);
  quantize(m.graph, {});
  const auto& steps = m.graph.main_entry().steps;
  const schema::TensorT& rows = m.graph.tensor(steps.front()->inputs[1]);
  const schema::TensorT& blocks = m.graph.tensor(steps.back()->inputs[1]);
  EXPECT_EQ(rows.layout, schema::Layout::RowMajor);
  EXPECT_EQ(blocks.layout, schema::Layout::Block8x4);
  EXPECT_EQ(m.graph.weights.size(), 2u);
}

TEST(Quantize, ATiedTableIsStoredOnceIfThatIsWanted) {
  Maker m;
  const uint32_t table = m.matrix(16, 32);
  const uint32_t x = m.builder.embedding("x", m.builder.tokens(), table);
  m.builder.logits(m.builder.take_rows("tail", x), table, kNone);
  const QuantizeOptions options = {.tie_tables = true};
  quantize(m.graph, options);
  const auto& steps = m.graph.main_entry().steps;
  const schema::StepT &lookup = *steps.front(), &head = *steps.back();
  EXPECT_EQ(lookup.inputs[1], head.inputs[1]);
  EXPECT_EQ(m.graph.tensor(head.inputs[1]).layout, schema::Layout::Block8x4);
  EXPECT_EQ(m.graph.weights.size(), 1u);
  // What is looked up is turned back.
  turn_matrices(m.graph, options);
  EXPECT_EQ(m.graph.tensor(head.inputs[0]).hadamard, 32u);
  EXPECT_EQ(lookup.options.AsEmbeddingOptions()->turned, 32u);
}

/// A ring of keys and values, 64 wide with two heads, that one attention reads.
struct KeyRing {
  Maker m;
  uint32_t k, v, x;
  explicit KeyRing(uint32_t width = 64) {
    x = m.embed(width);
    // As quantising leaves them.
    m.graph.tensor(x).type = DataType::I8;
    m.graph.tensor(x).scale_groups = 2;
    m.graph.model.rings.push_back(std::make_unique<schema::RingT>());
    k = add(width);
    v = add(width);
    auto& steps = m.graph.main_entry().steps;
    auto attend = std::make_unique<schema::StepT>();
    attend->op = OpCode::Attention;
    attend->inputs = {x, k, v, x, x};
    attend->outputs = {x};
    schema::AttentionOptionsT options;
    options.sources = 2;
    options.heads = options.kv_heads = 2;
    attend->options.Set(std::move(options));
    steps.push_back(std::move(attend));
    auto push = std::make_unique<schema::StepT>();
    push->op = OpCode::RingPush;
    push->inputs = {x, x};
    push->outputs = {k, v};
    push->options.Set(schema::RingPushOptionsT());
    steps.push_back(std::move(push));
  }
  uint32_t add(uint32_t width) {
    auto state = std::make_unique<schema::TensorT>();
    state->kind = schema::TensorKind::State;
    state->type = DataType::I8;
    state->ring = 0;
    state->rows = 8;
    state->width = width;
    state->scale_groups = 2;
    m.graph.model.tensors.push_back(std::move(state));
    return static_cast<uint32_t>(m.graph.model.tensors.size() - 1);
  }
};

TEST(NarrowRings, KeysAndValuesThatAttentionAloneReads) {
  KeyRing ring;
  EXPECT_EQ(narrow_rings(ring.m.graph), 2u);
  EXPECT_EQ(ring.m.graph.tensor(ring.k).type, DataType::I4Rows);
  EXPECT_EQ(ring.m.graph.tensor(ring.v).type, DataType::I4Rows);
}

TEST(NarrowRings, NotWithOtherReadersNorHeadsOfOtherWidths) {
  KeyRing narrow(48);
  EXPECT_EQ(narrow_rings(narrow.m.graph), 0u);
  KeyRing read;
  auto other = std::make_unique<schema::StepT>();
  other->op = OpCode::Add;
  other->inputs = {read.x, read.v};
  other->outputs = {read.x};
  read.m.graph.main_entry().steps.push_back(std::move(other));
  EXPECT_EQ(narrow_rings(read.m.graph), 0u);
  KeyRing seen;
  seen.m.graph.main_entry().kept.push_back(seen.k);
  EXPECT_EQ(narrow_rings(seen.m.graph), 0u) << "values go with their keys";
}

TEST(Quantize, AStateStaysFloatUnlessEveryStepThatTouchesItAllowsInt8) {
  Maker m;
  const uint32_t x = m.embed(4);
  m.graph.model.rings.push_back(std::make_unique<schema::RingT>());
  const auto add_state = [&](const std::string& name) {
    auto state = std::make_unique<schema::TensorT>();
    state->name = name;
    state->kind = schema::TensorKind::State;
    state->ring = 0;
    state->rows = 8;
    state->width = 4;
    m.graph.model.tensors.push_back(std::move(state));
    return static_cast<uint32_t>(m.graph.model.tensors.size() - 1);
  };
  const auto add_step = [&](OpCode op, std::vector<uint32_t> inputs, uint32_t output) {
    auto step = std::make_unique<schema::StepT>();
    step->op = op;
    step->inputs = std::move(inputs);
    step->outputs = {output};
    m.graph.main_entry().steps.push_back(std::move(step));
  };
  const uint32_t pushed = add_state("pushed"), recurrent = add_state("recurrent"),
                 both = add_state("both");
  add_step(OpCode::RingPush, {x}, pushed);
  add_step(OpCode::Add, {x, recurrent}, recurrent);
  add_step(OpCode::RingPush, {x}, both);
  add_step(OpCode::Add, {x, both}, x);
  m.finish(x);
  quantize(m.graph, {});
  EXPECT_EQ(m.find("pushed")->type, DataType::I8);
  EXPECT_EQ(m.find("recurrent")->type, DataType::F32);
  EXPECT_EQ(m.find("both")->type, DataType::F32);
}

TEST(Quantize, ANormThatOnlyAttentionReadsWritesTheScalesOfItsHeads) {
  Maker m;
  const uint32_t x = m.embed(8);
  GraphBuilder::Attention attention;
  attention.heads = attention.kv_heads = 2;
  attention.sources = {{m.norm(x, 8), m.builder.linear("v", x, m.matrix(8, 8), kNone)}};
  m.finish(m.builder.attention("a", x, attention));
  quantize(m.graph, {});
  EXPECT_EQ(m.find("norm")->type, DataType::I8);
  EXPECT_EQ(m.find("norm")->scale_groups, 2u);
}

TEST(Plan, RandomGraphsNeverOverlapLiveTensors) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Maker m;
    std::vector<uint32_t> made = {m.embed(4)};
    const size_t steps = 1 + random() % 40;
    for (size_t i = 0; i < steps; ++i) {
      const uint32_t x = made[made.size() - 1 - random() % std::min<size_t>(made.size(), 6)];
      const uint32_t width = m.graph.tensor(x).width;
      made.push_back(random() % 2 == 0
                         ? m.builder.activate("y" + std::to_string(i), x, schema::Activation::Relu)
                         : m.builder.linear("y" + std::to_string(i), x,
                                            m.matrix(1 + random() % 300, width), kNone));
    }
    m.finish(made.back());
    for (const uint32_t tensor : made) {
      if (random() % 8 == 0) m.graph.main_entry().kept.push_back(tensor);
    }
    if (random() % 2 == 0) quantize(m.graph, {});
    plan(m.graph);

    const std::vector<Lifetime> lives = lifetimes(m.graph.model);
    const auto& tensors = m.graph.model.tensors;
    uint64_t peak = 0;
    for (size_t a = 0; a < tensors.size(); ++a) {
      if (tensors[a]->kind != schema::TensorKind::Activation &&
          tensors[a]->kind != schema::TensorKind::Input) {
        continue;
      }
      EXPECT_EQ(tensors[a]->offset % 64, 0u);
      EXPECT_LE(tensors[a]->offset + tensors[a]->bytes, m.graph.model.plan->activations);
      peak = std::max(peak, tensors[a]->offset + tensors[a]->bytes);
      for (size_t b = a + 1; b < tensors.size(); ++b) {
        if (tensors[b]->kind != schema::TensorKind::Activation || !lives[a].overlaps(lives[b])) {
          continue;
        }
        EXPECT_TRUE(tensors[a]->offset + tensors[a]->bytes <= tensors[b]->offset ||
                    tensors[b]->offset + tensors[b]->bytes <= tensors[a]->offset)
            << "seed " << seed << ": " << tensors[a]->name << " and " << tensors[b]->name;
      }
    }
    EXPECT_LE(m.graph.model.plan->activations, peak + 64) << "seed " << seed;
  }
}

TEST(Plan, TokensAndKeptTensorsLiveToTheEnd) {
  Maker m;
  const uint32_t x = m.embed(4);
  m.finish(m.norm(m.norm(x, 4), 4));
  m.graph.main_entry().kept = {x};
  const std::vector<Lifetime> lives = lifetimes(m.graph.model);
  const uint32_t end = static_cast<uint32_t>(m.graph.main_entry().steps.size() - 1);
  EXPECT_EQ(lives[x].last, end);
  EXPECT_EQ(lives[m.graph.main_entry().tokens].first, 0u);
  EXPECT_EQ(lives[m.graph.main_entry().tokens].last, end);
}

TEST(Plan, StatesLieOneAfterAnother) {
  Maker m;
  add_memory(m, m.embed(8), 2);
  plan(m.graph);
  std::set<uint64_t> offsets;
  for (const auto& tensor : m.graph.model.tensors) {
    if (tensor->kind == schema::TensorKind::State) offsets.insert(tensor->offset);
  }
  EXPECT_EQ(offsets, (std::set<uint64_t>{0, 192, 384}));
  EXPECT_EQ(m.graph.model.plan->states, 576u);
}

TEST(Quantize, WhatIsTernaryByNatureStaysSoInAFloatFile) {
  Maker m;
  const uint32_t x = m.embed(16);
  m.builder.weight("unused", 1, 16, std::vector<float>(16));
  const uint32_t weight = m.builder.weight("w", 8, 16, std::vector<float>(8 * 16, 0.5f));
  m.graph.ternary.insert(weight);
  m.finish(m.builder.linear("y", x, weight, kNone));
  remove_dead(m.graph, true);
  quantize(m.graph, {.weights = "f32", .activations = false});
  EXPECT_EQ(m.find("w")->type, DataType::Ternary);
  EXPECT_EQ(m.find("x.i8")->type, DataType::I8) << "what enters it";
  EXPECT_EQ(m.find("y")->type, DataType::F32);
  EXPECT_EQ(turn_matrices(m.graph, {}), 0u) << "turned it would have more values";
}

TEST(Macs, CountsMatricesAndFullMemories) {
  Maker m;
  add_memory(m, m.embed(8), 2);
  // Four 8 x 8 matrices, the head, and 6 + 1 slots with keys, values and positions.
  EXPECT_EQ(macs_per_token(m.graph.model), 4u * 64 + 16 * 8 + 7 * 8 * 3);
}

}  // namespace
}  // namespace oxbow::convert
