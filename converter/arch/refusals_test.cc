// What importers of models with memories do not support is refused by the key that asks for it.

#include <gtest/gtest.h>

#include "converter/formats/checkpoint.h"
#include "converter/importers.h"
#include "host/errors.h"
#include "host/testing/files.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;
using testing::EditableCheckpoint;
using testing::TemporaryDirectory;

json hugging_face_xl() {
  return {{"model_type", "transfo-xl"},
          {"vocab_size", 50},
          {"cutoffs", {10, 20}},
          {"div_val", 2},
          {"d_model", 8},
          {"d_embed", 8},
          {"n_head", 2},
          {"d_head", 4},
          {"d_inner", 16},
          {"n_layer", 1},
          {"mem_len", 4}};
}

json original_xl() {
  return {{"model_type", "kimiyoung_transformer_xl"},
          {"n_token", 50},
          {"d_model", 8},
          {"n_head", 2},
          {"d_head", 4},
          {"d_inner", 16},
          {"n_layer", 1},
          {"mem_len", 4}};
}

json compressive() {
  return {{"model_type", "lucidrains_compressive_transformer"},
          {"num_tokens", 50},
          {"dim", 8},
          {"heads", 2},
          {"depth", 2},
          {"seq_len", 4}};
}

json longnet() {
  return {{"model_type", "torchscale_longnet_decoder"},
          {"vocab_size", 50},
          {"decoder_embed_dim", 8},
          {"decoder_attention_heads", 2},
          {"decoder_ffn_embed_dim", 12},
          {"decoder_layers", 1},
          {"segment_length", {8, 16}},
          {"dilated_ratio", {1, 2}}};
}

json reformer() {
  return {
      {"model_type", "reformer"},        {"vocab_size", 50},         {"hidden_size", 8},
      {"num_attention_heads", 2},        {"attention_head_size", 4}, {"feed_forward_size", 12},
      {"attn_layers", {"local", "lsh"}}, {"num_buckets", {4, 2}},    {"axial_pos_shape", {4, 8}},
      {"axial_pos_embds_dim", {4, 4}},   {"is_decoder", true}};
}

json big_bird() {
  return {{"model_type", "big_bird"}, {"vocab_size", 50},         {"max_position_embeddings", 64},
          {"hidden_size", 8},         {"num_attention_heads", 2}, {"intermediate_size", 12},
          {"num_hidden_layers", 1},   {"block_size", 2}};
}

json retnet() {
  return {{"model_type", "torchscale_retnet"},
          {"vocab_size", 50},
          {"decoder_embed_dim", 8},
          {"decoder_value_embed_dim", 8},
          {"decoder_retention_heads", 2},
          {"decoder_ffn_embed_dim", 8},
          {"decoder_layers", 1}};
}

json mamba2() {
  return {{"model_type", "mamba2"}, {"vocab_size", 50}, {"hidden_size", 8},
          {"num_hidden_layers", 1}, {"num_heads", 4},   {"head_dim", 4},
          {"state_size", 4},        {"n_groups", 1},    {"conv_kernel", 4}};
}

json qwen() {
  return {{"model_type", "qwen3_5_text"}, {"vocab_size", 50},         {"hidden_size", 8},
          {"num_hidden_layers", 2},       {"num_attention_heads", 2}, {"head_dim", 8},
          {"intermediate_size", 8}};
}

json yoco() {
  return {{"model_type", "yoco"}, {"vocab_size", 50},  {"dim", 8},         {"n_layers", 2},
          {"hidden_dim", 8},      {"n_self_heads", 2}, {"n_attn_heads", 2}};
}

/// The message for a configuration with one key changed.
std::string refusal(json config, const std::string& key, const json& value) {
  config[key] = value;
  const TemporaryDirectory directory;
  EditableCheckpoint{config, {{"w", {{1}, {1}}}}}.write(directory / "in");
  try {
    import_checkpoint(Checkpoint(directory / "in"), {});
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing was refused";
}

void expect_words(const std::string& message, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(message.find(word), std::string::npos) << "no '" << word << "' in: " << message;
  }
}

TEST(TransfoXlRefuses, OtherPositions) {
  for (const json& config : {hugging_face_xl(), original_xl()}) {
    expect_words(refusal(config, "attn_type", 2), {"attn_type is 2", "expected 0"});
  }
}

TEST(TransfoXlRefuses, AnExtendedContext) {
  expect_words(refusal(original_xl(), "ext_len", 3), {"ext_len is 3", "expected 0"});
}

TEST(TransfoXlRefuses, ASampledSoftmax) {
  expect_words(refusal(original_xl(), "sample_softmax", 100), {"sample_softmax is 100"});
}

TEST(TransfoXlRefuses, SameLengthWithoutAMemory) {
  expect_words(refusal(hugging_face_xl(), "mem_len", 0), {"mem_len is 0", "same_length"});
}

TEST(TransfoXlRefuses, CutoffsThatDoNotAscend) {
  for (const json& cutoffs : {json{20, 20}, json{20, 10}, json{10, 50}, json{10, 60}}) {
    expect_words(refusal(hugging_face_xl(), "cutoffs", cutoffs), {"cutoffs", "ascending"});
  }
  expect_words(refusal(hugging_face_xl(), "cutoffs", {1, 2, 3, 4, 5, 6, 7, 8, 9}),
               {"cutoffs", "at most 8"});
}

TEST(TransfoXlRefuses, EmbeddingsDividedToNothing) {
  expect_words(refusal(hugging_face_xl(), "div_val", 3),
               {"div_val is 3", "the embeddings' width, 8", "2 times"});
}

TEST(TransfoXlRefuses, AnOddWidth) {
  expect_words(refusal(original_xl(), "d_model", 9), {"d_model is 9", "multiple"});
}

TEST(TransfoXlRefuses, ProjectionsTiedByNumbers) {
  expect_words(refusal(original_xl(), "tie_projs", {0, 1}), {"tie_projs", "true and false"});
}

TEST(LucidrainsCompressiveRefuses, AMogrifier) {
  expect_words(refusal(compressive(), "mogrify_gru", true), {"mogrify_gru is true"});
}

TEST(LucidrainsCompressiveRefuses, MemoriesTooShort) {
  expect_words(refusal(compressive(), "mem_len", 3), {"mem_len is 3", "4"});
  expect_words(refusal(compressive(), "cmem_len", 0), {"cmem_len is 0", "from 1"});
}

TEST(LucidrainsCompressiveRefuses, LayersThatAreNotThere) {
  expect_words(refusal(compressive(), "memory_layers", {1, 3}),
               {"memory_layers is [1,3]", "1 to 2"});
}

TEST(RetNetRefuses, WhatItDoesNotHave) {
  expect_words(refusal(retnet(), "moe_freq", 2), {"moe_freq is 2"});
  expect_words(refusal(retnet(), "multiway", true), {"multiway is true"});
  expect_words(refusal(retnet(), "decoder_retention_heads", 3), {"decoder_embed_dim", "multiple"});
  expect_words(refusal(retnet(), "decoder_value_embed_dim", 9), {"decoder_value_embed_dim is 9"});
}

TEST(LongNetRefuses, WhatItDoesNotHave) {
  expect_words(refusal(longnet(), "segment_length", {8}),
               {"segment_length has 1", "dilated_ratio 2"});
  expect_words(refusal(longnet(), "dilated_ratio", {1, 3}), {"segment_length is 16", "multiple"});
  expect_words(refusal(longnet(), "xpos_rel_pos", true), {"xpos_rel_pos is true"});
  expect_words(refusal(longnet(), "rel_pos_buckets", 32), {"rel_pos_buckets is 32"});
  expect_words(refusal(longnet(), "moe_freq", 2), {"moe_freq is 2"});
}

TEST(ReformerRefuses, WhatItDoesNotHave) {
  expect_words(refusal(reformer(), "num_buckets", nullptr), {"num_buckets is missing"});
  expect_words(refusal(reformer(), "num_buckets", 7), {"num_buckets has 7", "even"});
  expect_words(refusal(reformer(), "num_buckets", {4, 3}), {"num_buckets has 3", "even"});
  expect_words(refusal(reformer(), "num_buckets", {1 << 12, 1 << 12}),
               {"num_buckets has 2 factors"});
  expect_words(refusal(reformer(), "attn_layers", {"local", "full"}), {"attn_layers has \"full\""});
  expect_words(refusal(reformer(), "axial_pos_shape", {4}), {"axial_pos_shape has 1"});
  expect_words(refusal(reformer(), "axial_pos_embds_dim", {4, 5}), {"the sum 9", "hidden_size, 8"});
  expect_words(refusal(reformer(), "num_hidden_layers", 3), {"num_hidden_layers", "2"});
}

TEST(BigBirdRefuses, WhatItDoesNotHave) {
  expect_words(refusal(big_bird(), "attention_type", "sparse"), {"attention_type", "sparse"});
  expect_words(refusal(big_bird(), "position_embedding_type", "relative_key"),
               {"position_embedding_type", "relative_key"});
  expect_words(refusal(big_bird(), "is_decoder", true), {"is_decoder is true"});
}

TEST(Mamba2Refuses, SizesAndLimitsThatDoNotFit) {
  expect_words(refusal(mamba2(), "expand", 3), {"num_heads * head_dim is 16", "24"});
  expect_words(refusal(mamba2(), "n_groups", 3), {"num_heads is 4", "n_groups, 3"});
  expect_words(refusal(mamba2(), "hidden_act", "gelo"), {"hidden_act", "gelo"});
  expect_words(refusal(mamba2(), "time_step_limit", {0.5, 0.1}), {"time_step_limit"});
  expect_words(refusal(mamba2(), "time_step_limit", {0.5}), {"time_step_limit has 1 numbers"});
  expect_words(refusal(mamba2(), "time_step_limit", {"a", 1}), {"time_step_limit", "numbers"});
}

TEST(Qwen35Refuses, LayersAndHeadsItDoesNotKnow) {
  expect_words(refusal(qwen(), "layer_types", {"linear_attention"}), {"layer_types has 1"});
  expect_words(refusal(qwen(), "layer_types", {"mamba", "mamba"}), {"layer_types has", "mamba"});
  expect_words(refusal(qwen(), "attn_output_gate", false), {"attn_output_gate is false"});
  expect_words(refusal(qwen(), "partial_rotary_factor", 0.4), {"partial_rotary_factor turns 3"});
  expect_words(refusal(qwen(), "linear_num_value_heads", 5), {"linear_num_value_heads is 5"});
}

TEST(YocoRefuses, LayersAndHeadsThatDoNotFit) {
  expect_words(refusal(yoco(), "n_layers", 3), {"n_layers is 3"});
  expect_words(refusal(yoco(), "n_attn_kv_heads", 3), {"n_attn_kv_heads is 3"});
  expect_words(refusal(yoco(), "n_self_heads", 3), {"dim is 8", "n_self_heads"});
}

/// All that the importers themselves find wrong, and keys, is told in one message.
TEST(Problems, OfAConfigurationAreToldAtOnce) {
  json config = reformer();
  config["num_buckets"] = {4, 3};
  config["attn_layers"] = {"local", "full", "lsh"};
  config["num_hidden_layers"] = 7;
  config["axial_pos_embds_dim"] = {4, 5};
  config["colour"] = "blue";
  expect_words(refusal(config, "hidden_act", "gelo"),
               {"5 problems", "num_buckets has 3", "attn_layers has \"full\"", "num_hidden_layers",
                "the sum 9", "hidden_act"});
  // Keys are known to be unknown once a graph was built, which values that contradict each other do not allow.
  config = reformer();
  config["colour"] = "blue";
  expect_words(refusal(config, "hidden_act", "gelo"),
               {"2 problems", "hidden_act", "unknown key colour"});
  config = longnet();
  config["dilated_ratio"] = {1, 3};
  config["decoder_attention_heads"] = 3;
  config["xpos_rel_pos"] = true;
  expect_words(
      refusal(config, "moe_freq", 2),
      {"4 problems", "segment_length is 16", "decoder_embed_dim is 8", "xpos_rel_pos", "moe_freq"});
  config = mamba2();
  config["expand"] = 3;
  config["n_groups"] = 3;
  config["rms_norm"] = false;
  expect_words(refusal(config, "time_step_limit", {0.5}),
               {"4 problems", "n_groups, 3", "num_heads * head_dim", "rms_norm is false",
                "time_step_limit has 1"});
}

}  // namespace
}  // namespace oxbow::convert
