// What importers of models with blocks, rounds, experts, short rows and neighbours accept in other forms than the golden
// packs have, and what they refuse by the key that asks for it.

#include <gtest/gtest.h>

#include "converter/formats/checkpoint.h"
#include "converter/importers.h"
#include "host/errors.h"
#include "host/testing/files.h"
#include "host/testing/paths.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;
using testing::EditableCheckpoint;
using testing::TemporaryDirectory;

EditableCheckpoint golden(const std::string& pack) {
  return EditableCheckpoint::read(testing::source_dir() + "/tests/golden/" + pack);
}
EditableCheckpoint longt5() { return golden("longt5/lt5b_tglobal"); }
EditableCheckpoint universal() { return golden("universal_transformer/ut1_act"); }
EditableCheckpoint switched() { return golden("labml_switch/sw1"); }
EditableCheckpoint switch_transformers() { return golden("switch_transformers/st1_capacity"); }
EditableCheckpoint sparse() { return golden("sparse_transformer/sp_both"); }
EditableCheckpoint image() { return golden("image_transformer/im_both"); }
EditableCheckpoint hourglass() { return golden("labml_hourglass/hg1"); }
EditableCheckpoint reformer() { return golden("reformer/rf1"); }
EditableCheckpoint retro() { return golden("labml_retro/re1"); }

Graph import(const EditableCheckpoint& checkpoint, const ImportOptions& options = {}) {
  const TemporaryDirectory directory;
  checkpoint.write(directory / "in");
  return import_checkpoint(Checkpoint(directory / "in"), options);
}

void expect_refused(EditableCheckpoint checkpoint, const std::string& key, const json& value,
                    const std::string& words) {
  checkpoint.config[key] = value;
  std::string message = "nothing was refused";
  try {
    import(checkpoint);
  } catch (const InputError& error) {
    message = error.what();
  }
  EXPECT_NE(message.find(key), std::string::npos) << message;
  EXPECT_NE(message.find(words), std::string::npos) << message;
}

size_t count_steps(const Graph& graph, schema::OpCode op) {
  size_t count = 0;
  for (const auto& entry : graph.model.entry_points) {
    for (const auto& step : entry->steps) count += step->op == op ? 1 : 0;
  }
  return count;
}

TEST(Reformer, GoesOnWithAContextAndReadsAtOnceWithout) {
  const Graph whole = import(reformer());
  EXPECT_EQ(whole.main_entry().name, "encode");
  EXPECT_TRUE(whole.model.rings.empty());
  EXPECT_NE(whole.warnings.at(0).find("--context"), std::string::npos);
  const Graph graph = import(reformer(), {.context = 50});
  EXPECT_EQ(graph.main_entry().name, "step");
  EXPECT_EQ(graph.main_entry().capacity, 50u);
  EXPECT_EQ(graph.model.task, schema::Task::Generate);
  EXPECT_EQ(graph.model.rings.size(), 4u);
  EXPECT_EQ(count_steps(graph, schema::OpCode::HashBuckets), 2u);
  EXPECT_EQ(count_steps(graph, schema::OpCode::SortRows), 0u);
  std::vector<std::string> inputs;
  for (const uint32_t input : graph.main_entry().inputs) {
    inputs.push_back(graph.model.tensors[input]->name);
  }
  // Besides the tokens.
  EXPECT_EQ(inputs, (std::vector<std::string>{"layer1.buckets", "layer3.buckets"}));
}

TEST(Reformer, RefusesAContextThatItDoesNotHave) {
  for (const ImportOptions& options : {ImportOptions{.context = 129}, ImportOptions{.context = 1},
                                       ImportOptions{.context = 50, .ring = true}}) {
    EXPECT_THROW(import(reformer(), options), UsageError);
  }
  EditableCheckpoint encoder = reformer();
  encoder.config["is_decoder"] = false;
  EXPECT_THROW(import(encoder, {.context = 50}), UsageError);
}

// Versions 4 of the original made no layer sparse where all were to be.
TEST(SwitchTransformers, ALayerWithoutARouterIsDense) {
  EditableCheckpoint checkpoint = golden("switch_transformers/st2_all");
  const size_t before = count_steps(import(checkpoint), schema::OpCode::Route);
  EXPECT_GT(before, 0u);
  testing::FloatTensors dense;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const std::string expert = ".experts.expert_";
    const size_t at = name.find(expert);
    if (at == std::string::npos) {
      if (name.find(".router.") == std::string::npos) dense[name] = tensor;
    } else if (name[at + expert.size()] == '0') {
      dense[name.substr(0, at) + name.substr(at + expert.size() + 1)] = tensor;
    }
  }
  checkpoint.tensors = dense;
  EXPECT_EQ(count_steps(import(checkpoint), schema::OpCode::Route), 0u);
}

TEST(LongT5, WarnsOfBlocksThatTheOriginalCutsDifferently) {
  EXPECT_TRUE(import(longt5()).warnings.empty());
  EditableCheckpoint checkpoint = longt5();
  checkpoint.config["global_block_size"] = 6;
  const Graph graph = import(checkpoint);
  ASSERT_EQ(graph.warnings.size(), 1u);
  EXPECT_NE(graph.warnings[0].find("global_block_size"), std::string::npos);
}

TEST(LongT5, RefusesByTheKey) {
  expect_refused(longt5(), "encoder_attention_type", "full", "transient-global");
  expect_refused(longt5(), "local_radius", 0, "expected");
  expect_refused(longt5(), "global_block_size", 0, "expected");
}

TEST(UniversalTransformer, RoundsShareTheirWeights) {
  const Graph one = import([] {
    EditableCheckpoint checkpoint = universal();
    checkpoint.config["num_layers"] = 1;
    return checkpoint;
  }());
  const Graph six = import(universal());
  EXPECT_EQ(count_steps(one, schema::OpCode::Halt), 1u);
  EXPECT_EQ(count_steps(six, schema::OpCode::Halt), 6u);
  // Each round adds the row of its signal and nothing else.
  EXPECT_EQ(six.weights.size(), one.weights.size() + 5);
}

TEST(UniversalTransformer, RefusesByTheKey) {
  expect_refused(universal(), "embedding_size", 31, "expected hidden_size, 32");
  expect_refused(universal(), "num_heads", 5, "total_key_depth");
  expect_refused(universal(), "num_layers", 0, "expected");
  expect_refused(universal(), "norm_first", true, "norm_first");
}

TEST(UniversalTransformer, AMaskMakesAttentionCausal) {
  EditableCheckpoint checkpoint = universal();
  checkpoint.config["use_mask"] = true;
  const Graph graph = import(checkpoint);
  for (const auto& step : graph.model.entry_points[0]->steps) {
    if (step->op != schema::OpCode::Attention) continue;
    EXPECT_EQ(step->options.AsAttentionOptions()->pattern->kind, schema::PatternKind::Causal);
  }
}

TEST(SwitchTransformer, ScalesByTheProbabilityOnlyIfAsked) {
  const size_t scaled = count_steps(import(switched()), schema::OpCode::Multiply);
  EditableCheckpoint checkpoint = switched();
  checkpoint.config["is_scale_prob"] = false;
  EXPECT_EQ(count_steps(import(checkpoint), schema::OpCode::Multiply), scaled - 2);
}

TEST(SwitchTransformer, RefusesByTheKey) {
  expect_refused(switched(), "drop_tokens", true, "random");
  expect_refused(switched(), "n_experts", 0, "expected");
  expect_refused(switched(), "heads", 5, "d_model");
}

TEST(SwitchTransformers, OnlyTheEncoderHasACapacity) {
  const Graph graph = import(switch_transformers());
  size_t with = 0;
  for (const auto& entry : graph.model.entry_points) {
    for (const auto& step : entry->steps) {
      const auto* options = step->options.AsRouteOptions();
      if (options == nullptr) continue;
      EXPECT_EQ(entry->name, "encode");
      EXPECT_EQ(options->capacity, 5u);
      ++with;
    }
  }
  EXPECT_EQ(with, 2u);
  EXPECT_EQ(count_steps(graph, schema::OpCode::Route), 3u);
}

TEST(SwitchTransformers, RefusesByTheKey) {
  expect_refused(switch_transformers(), "expert_capacity", 0, "expected");
  expect_refused(switch_transformers(), "num_experts", 0, "expected");
  expect_refused(switch_transformers(), "is_gated_act", true, "no gate");
  expect_refused(switch_transformers(), "router_dtype", "bfloat16", "float32");
}

TEST(SparseTransformer, RefusesByTheKey) {
  expect_refused(sparse(), "attention", json::array(), "list of patterns");
  expect_refused(sparse(), "attention", json::array({"strided", "local"}), "all, strided, fixed");
  expect_refused(sparse(), "summary", 4, "at most stride");
  expect_refused(sparse(), "stride", 0, "expected");
}

TEST(ImageTransformer, RefusesByTheKey) {
  expect_refused(image(), "attention", json::array({"3d"}), "1d, 2d");
  expect_refused(image(), "block_width", 16, "expected");
  expect_refused(image(), "query_block", 0, "expected");
  expect_refused(image(), "image_height", 32769, "expected");
}

TEST(PatternedDecoders, HaveNoRing) {
  ImportOptions options;
  options.ring = true;
  EXPECT_THROW(import(sparse(), options), UsageError);
}

TEST(Hourglass, RefusesByTheKey) {
  expect_refused(hourglass(), "shortening_factors", json::array(), "at least one number");
  expect_refused(hourglass(), "shortening_factors", json::array({3, 0}), "expected");
  expect_refused(hourglass(), "is_gated", true, "is_gated");
}

TEST(Retro, TakesNeighboursAsAnInputWithAShape) {
  const Graph graph = import(retro());
  std::vector<std::string> names;
  for (const uint32_t input : graph.model.entry_points[0]->inputs) {
    names.push_back(graph.tensor(input).name);
    EXPECT_FALSE(graph.tensor(input).required);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"retrieved_ids", "retrieved_ids.shape"}));
}

TEST(Retro, RefusesByTheKey) {
  expect_refused(retro(), "ca_layers", json::array(), "at least one layer");
  expect_refused(retro(), "ca_layers", json::array({1, 1}), "twice");
  expect_refused(retro(), "ca_layers", json::array({4}), "expected");
  expect_refused(retro(), "d_k", 9, "even");
  expect_refused(retro(), "vocab_size", 66, "n_vocab");
}

}  // namespace
}  // namespace oxbow::convert
