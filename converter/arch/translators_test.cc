// What importers of models that translate accept in other forms than the golden packs have, and what
// they refuse by the key that asks for it.

#include <gtest/gtest.h>

#include "converter/formats/checkpoint.h"
#include "converter/testing/imports.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;
using testing::EditableCheckpoint;
using testing::golden;
using testing::imported;

EditableCheckpoint marian() { return golden("marian/ma1"); }
EditableCheckpoint t5() { return golden("t5/t5a_relu_tied"); }
EditableCheckpoint lite() { return golden("lite_transformer/lt2_lightweight"); }

void expect_refused(const EditableCheckpoint& checkpoint, const std::vector<std::string>& words,
                    const ImportOptions& options = {}) {
  std::string message = "nothing was refused";
  try {
    imported(checkpoint, options);
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  for (const std::string& word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << "no '" << word << "' in: " << message;
  }
}

void expect_key_refused(EditableCheckpoint checkpoint, const std::string& key, const json& value,
                        std::vector<std::string> words = {}) {
  checkpoint.config[key] = value;
  words.push_back(key);
  expect_refused(checkpoint, words);
}

TEST(Marian, TiedWeightsMayBeThereUnderTheirOtherNames) {
  EditableCheckpoint checkpoint = marian();
  for (const char* name : {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight",
                           "lm_head.weight"}) {
    checkpoint.tensors[name] = checkpoint.tensors.at("model.shared.weight");
  }
  EXPECT_EQ(imported(checkpoint).model.entry_points.size(), 2u);
}

TEST(Marian, TheFixedPositionsMayBeMissing) {
  const EditableCheckpoint whole = marian();
  EditableCheckpoint bare = whole;
  const std::string name = "model.encoder.embed_positions.weight";
  bare.tensors.erase(name);
  const Graph graph = imported(bare);
  const std::vector<float>& stored = whole.tensors.at(name).values;
  for (const auto& [index, weight] : graph.weights) {
    if (graph.tensor(index).name != name) continue;
    const std::vector<float> values = weight.values();
    ASSERT_EQ(values.size(), stored.size());
    for (size_t i = 0; i < stored.size(); ++i) EXPECT_NEAR(values[i], stored[i], 1e-6) << i;
    return;
  }
  FAIL() << "there is no table of positions";
}

TEST(Marian, SaysHowTextsAreGenerated) {
  const Graph graph = imported(marian());
  EXPECT_EQ(graph.model.task, schema::Task::Translate);
  const schema::GenerationT& generation = *graph.model.generation;
  EXPECT_EQ(generation.start_token, 83);
  EXPECT_EQ(generation.end_token, 0);
  EXPECT_EQ(generation.forced_last_token, 0);
  EXPECT_EQ(generation.forbidden_tokens, std::vector<int32_t>{83});
}

TEST(Marian, GenerationSettingsOfTheConfigurationCount) {
  EditableCheckpoint checkpoint = marian();
  checkpoint.config["bad_words_ids"] = {{83}, {5}, {6, 7}};
  checkpoint.config["forced_eos_token_id"] = nullptr;
  const Graph graph = imported(checkpoint);
  EXPECT_EQ(graph.model.generation->forced_last_token, -1);
  EXPECT_EQ(graph.model.generation->forbidden_tokens, (std::vector<int32_t>{83, 5}));
  EXPECT_EQ(graph.warnings.size(), 1u);
}

TEST(Marian, VocabulariesOfTheirOwnNeedTheirOwnTables) {
  EditableCheckpoint checkpoint = marian();
  checkpoint.config["share_encoder_decoder_embeddings"] = false;
  expect_refused(checkpoint, {"model.encoder.embed_tokens.weight", "missing"});
}

TEST(Marian, RefusesWhatItCannotDo) {
  expect_key_refused(marian(), "normalize_before", true);
  expect_key_refused(marian(), "tie_encoder_decoder", true);
  expect_key_refused(marian(), "activation_function", "mish", {"relu"});
  expect_key_refused(marian(), "decoder_attention_heads", 5, {"48"});
  ImportOptions options;
  options.max_segment = 41;
  expect_refused(marian(), {"max_position_embeddings", "40", "41"}, options);
  options = {};
  options.ring = true;
  expect_refused(marian(), {"ring"}, options);
}

TEST(T5, TablesUnderOtherNamesAndUnreadOnesArePassedOver) {
  EditableCheckpoint checkpoint = t5();
  for (const char* name :
       {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}) {
    checkpoint.tensors[name] = checkpoint.tensors.at("shared.weight");
  }
  checkpoint.tensors["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = {
      {8, 3}, std::vector<float>(24)};
  EXPECT_EQ(imported(checkpoint).model.entry_points.size(), 2u);
}

bool has_tensor(const Graph& graph, const std::string& name) {
  for (const auto& tensor : graph.model.tensors) {
    if (tensor->name == name) return true;
  }
  return false;
}

TEST(T5, NewerConfigurationsTellOfTheFactorApartFromTheHead) {
  const char* factor = "decoder.final_layer_norm.weight.scaled";
  EditableCheckpoint checkpoint = t5();
  EXPECT_TRUE(has_tensor(imported(checkpoint), factor));
  checkpoint.config["scale_decoder_outputs"] = false;
  EXPECT_FALSE(has_tensor(imported(checkpoint), factor));
  EXPECT_FALSE(has_tensor(imported(checkpoint), "lm_head.weight"));
  checkpoint.tensors["lm_head.weight"] = checkpoint.tensors.at("shared.weight");
  EXPECT_TRUE(has_tensor(imported(checkpoint), "lm_head.weight"));
  checkpoint.config["scale_decoder_outputs"] = true;
  EXPECT_TRUE(has_tensor(imported(checkpoint), factor));
}

TEST(T5, TextsAreAsLongAsAskedFor) {
  const auto lengths = [](const Graph& graph) {
    const schema::EntryPointT& encode = *graph.model.entry_points[0];
    return std::pair(graph.tensor(encode.tokens).rows, graph.main_entry().capacity);
  };
  EXPECT_EQ(lengths(imported(t5())), std::pair(512u, 512u));
  ImportOptions options;
  options.max_segment = 1000;
  options.context = 20;
  EXPECT_EQ(lengths(imported(t5(), options)), std::pair(1000u, 20u));
}

TEST(T5, RefusesWhatItCannotDo) {
  EditableCheckpoint named = t5();
  named.config.erase("dense_act_fn");
  expect_key_refused(named, "feed_forward_proj", "gated-mish", {"relu"});
  expect_key_refused(t5(), "dense_act_fn", "mish", {"relu"});
  expect_key_refused(t5(), "relative_attention_num_buckets", 2);
  expect_key_refused(t5(), "relative_attention_max_distance", 4);
  expect_key_refused(t5(), "num_decoder_layers", 0);
  EditableCheckpoint untied = t5();
  untied.config["tie_word_embeddings"] = false;
  expect_refused(untied, {"lm_head.weight", "missing"});
  EditableCheckpoint gated = t5();
  gated.config["is_gated_act"] = true;
  expect_refused(gated, {"is_gated_act contradicts feed_forward_proj"});
}

TEST(LiteTransformer, TheFeedForwardListsMeanNothing) {
  EditableCheckpoint checkpoint = lite();
  checkpoint.config["encoder_ffn_list"] = {false, false, false};
  EXPECT_EQ(imported(checkpoint).model.entry_points.size(), 2u);
}

TEST(LiteTransformer, RefusesBranchesItDoesNotKnow) {
  const std::string key = "encoder_branch_type";
  expect_key_refused(lite(), key, {"attn:1:20:2", "recurrent:3:20:5"}, {"recurrent:3:20:5"});
  expect_key_refused(lite(), key, {"attn:1:20:2", "lightweight:3:20"}, {"lightweight:3:20"});
  expect_key_refused(lite(), key, {"attn:1:20:2", "lightweight:0:20:5"}, {"lightweight:0:20:5"});
  expect_key_refused(lite(), key, {"attn:1:20:2", "lightweight:3:20:6"}, {"heads"});
  expect_key_refused(lite(), key, {"attn:1:20:2", "lightweight:3:4294967316:5"}, {"WIDTH"});
  expect_key_refused(lite(), key, {"attn:1:20:2", "lightweight:3:10:5"}, {"30", "40"});
  expect_key_refused(lite(), key, "attn:1:40:2", {"list"});
}

TEST(LiteTransformer, RefusesWhatItCannotDo) {
  expect_key_refused(lite(), "encoder_kernel_size_list", {3, 5}, {"3 layers"});
  expect_key_refused(lite(), "adaptive_softmax_cutoff", "10,20", {"not supported"});
  expect_key_refused(lite(), "adaptive_input", true, {"not supported"});
  EditableCheckpoint other = lite();
  other.config["tgt_vocab_size"] = 84;
  expect_refused(other, {"share_all_embeddings"});
  expect_key_refused(lite(), "activation_fn", "mish", {"relu"});
  expect_key_refused(lite(), "decoder_attention_heads", 7, {"40"});
  expect_key_refused(lite(), "padding_idx", 83);
}

}  // namespace
}  // namespace oxbow::convert
