// What the importers of decoders refuse, and forms of one model that must give the same numbers.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "converter/convert.h"
#include "converter/testing/imports.h"
#include "converter/testing/stream.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

using Json = nlohmann::json;
using testing::EditableCheckpoint;
using testing::golden;
using testing::imported;
using testing::Stream;
using testing::TemporaryDirectory;

/// Of one run of 30 tokens, in float32.
std::vector<float> logits(const EditableCheckpoint& editable) {
  const TemporaryDirectory directory;
  editable.write(directory / "in");
  ConvertOptions options;
  options.directory = directory / "in";
  options.output = directory / "model.oxb";
  options.quantize = {.weights = "f32", .activations = false};
  convert(options);
  Stream stream(options.output);
  std::vector<int32_t> tokens;
  for (uint32_t i = 0; i < 30; ++i) {
    tokens.push_back(static_cast<int32_t>((i * 7919 + i * i * 31) % stream.info().vocabulary));
  }
  return stream.run(tokens);
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5f) << i;
}

struct Refusal {
  const char* pack;
  std::function<void(Json&)> edit;
  const char* words;
};

TEST(Decoders, RefuseWhatWouldChangeTheResults) {
  const Refusal cases[] = {
      {"qwen2/q2b_sliding",
       [](Json& c) {
         c["use_sliding_window"] = false;
         c["layer_types"] = {"full_attention", "sliding_attention", "full_attention"};
       },
       "layer_types has sliding_attention, expected use_sliding_window to be true"},
      {"qwen2/q2b_sliding", [](Json& c) { c["layer_types"] = {"full_attention"}; },
       "layer_types has 1 entries, expected one for each of 3 layers"},
      {"qwen2/q2b_sliding",
       [](Json& c) {
         c["layer_types"] = {"full_attention", "chunked_attention", "full_attention"};
       },
       "expected full_attention or sliding_attention"},
      {"qwen2/q2b_sliding",
       [](Json& c) {
         c["rope_scaling"] = {{"rope_type", "proportional"}, {"factor", 4}};
       },
       "expected one of: default, linear, llama3, dynamic, yarn, longrope"},
      {"qwen3/q3b_legacy", [](Json& c) { c.erase("head_dim"); },
       "self_attn.q_proj.bias has shape [48]"},
      {"gpt_neox/nx1", [](Json& c) { c["rotary_pct"] = 0.25; }, "unknown key rotary_pct"},
      {"gpt_neox/nx1", [](Json& c) { c["rope_parameters"]["partial_rotary_factor"] = 0.4; },
       "turns 3 of 8 elements of each head, expected an even number"},
      {"phi/ph2_qknorm_legacy", [](Json& c) { c["partial_rotary_factor"] = 0.1; },
       "partial_rotary_factor turns 1 of 10 elements"},
      {"phi/ph2_qknorm_legacy", [](Json& c) { c["qk_layernorm"] = false; },
       "tensors that model_type phi does not know"},
      {"phi3/p3b_partial_sliding",
       [](Json& c) {
         c["rope_scaling"] = {{"type", "longrope"}, {"short_factor", {1, 1, 1}}};
       },
       "long_factor has 0 numbers, expected 3 above 0"},
      {"phi3/p3b_partial_sliding", [](Json& c) { c["attention_bias"] = true; },
       "unknown key attention_bias"},
      {"opt/op2_postnorm_proj", [](Json& c) { c["word_embed_proj_dim"] = 36; },
       "embed_tokens.weight has shape [67, 24]"},
      {"opt/op2_postnorm_proj", [](Json& c) { c["do_layer_norm_before"] = true; },
       "model.decoder.final_layer_norm.bias is missing"},
      {"gemma3_text/gm2_legacy_linear", [](Json& c) { c["final_logit_softcapping"] = 0.0; },
       "final_logit_softcapping"},
      {"gemma3_text/gm2_legacy_linear", [](Json& c) { c["attn_logit_softcapping"] = 50.0; },
       "attn_logit_softcapping is not supported, expected null"},
      {"gemma3_text/gm2_legacy_linear", [](Json& c) { c["use_bidirectional_attention"] = true; },
       "use_bidirectional_attention is true, expected false"},
  };
  for (const Refusal& refusal : cases) {
    EditableCheckpoint checkpoint = golden(refusal.pack);
    refusal.edit(checkpoint.config);
    SCOPED_TRACE(refusal.pack + std::string(": ") + refusal.words);
    try {
      imported(checkpoint);
      ADD_FAILURE() << "nothing was refused";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(refusal.words), std::string::npos) << error.what();
    }
  }
}

TEST(Decoders, LayersWithAWindowKeepWhatItSees) {
  const Graph plain = imported(golden("qwen2/q2b_sliding"), {.context = 20});
  ASSERT_EQ(plain.model.rings.size(), 3u);
  EXPECT_EQ(plain.model.rings[0]->capacity, 20u);
  EXPECT_EQ(plain.model.rings[1]->capacity, 8u);
  EXPECT_EQ(plain.model.entry_points[0]->capacity, 20u);
  const Graph endless =
      imported(golden("qwen2/q2b_sliding"), {.context = 20, .ring = true, .sinks = 3});
  EXPECT_EQ(endless.model.rings[0]->capacity, 22u);
  EXPECT_EQ(endless.model.rings[0]->pinned, 3u);
  EXPECT_EQ(endless.model.rings[1]->capacity, 8u);
  EXPECT_EQ(endless.model.rings[1]->pinned, 0u);
  EXPECT_EQ(endless.model.entry_points[0]->capacity, 0u);
}

TEST(Decoders, AWindowInAllLayersMakesAnEndlessStream) {
  EditableCheckpoint checkpoint = golden("qwen2/q2b_sliding");
  checkpoint.config["max_window_layers"] = 0;
  const Graph graph = imported(checkpoint);
  EXPECT_EQ(graph.model.entry_points[0]->capacity, 0u);
  for (const auto& ring : graph.model.rings) EXPECT_EQ(ring->capacity, 8u);
}

/// The rows [first, first + count) of a matrix, under another name.
void cut(EditableCheckpoint& checkpoint, const std::string& from, const std::string& to,
         size_t first, size_t count) {
  const auto& tensor = checkpoint.tensors.at(from);
  const size_t width = tensor.shape[1];
  checkpoint.tensors[to] = {
      {count, width},
      {tensor.values.begin() + static_cast<std::ptrdiff_t>(first * width),
       tensor.values.begin() + static_cast<std::ptrdiff_t>((first + count) * width)}};
}

/// Llama's pack with BitNet's activation and norms, with float matrices.
EditableCheckpoint bitnet() {
  EditableCheckpoint checkpoint = golden("llama/l1_gqa");
  checkpoint.config["model_type"] = "bitnet";
  checkpoint.config.erase("hidden_act");
  for (uint32_t i = 0; i < checkpoint.config["num_hidden_layers"].get<uint32_t>(); ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    for (const auto& [name, from] : {std::pair{"self_attn.attn_sub_norm.weight", "hidden_size"},
                                     std::pair{"mlp.ffn_sub_norm.weight", "intermediate_size"}}) {
      const auto width = checkpoint.config[from].get<size_t>();
      std::vector<float> values(width);
      for (size_t k = 0; k < width; ++k) values[k] = 1.0f + 0.03f * static_cast<float>(k % 7);
      checkpoint.tensors[layer + name] = {{width}, values};
    }
  }
  return checkpoint;
}

void scale(EditableCheckpoint& checkpoint, const std::string& ending, float factor) {
  for (auto& [name, tensor] : checkpoint.tensors) {
    if (!name.ends_with(ending)) continue;
    for (float& value : tensor.values) value *= factor;
  }
}

TEST(Decoders, BitnetsSubNormsTakeTheSizeOfWhatEntersTheLastMatrices) {
  EditableCheckpoint plain = bitnet(), scaled = bitnet(), changed = bitnet();
  plain.config["rms_norm_eps"] = scaled.config["rms_norm_eps"] = 1e-12;
  // Squared ReLU is as positive as its argument, so the gate may grow too.
  for (const char* name : {"v_proj.weight", "up_proj.weight", "gate_proj.weight"}) {
    scale(scaled, name, 4.0f);
  }
  const std::vector<float> expected = logits(plain);
  expect_near(logits(scaled), expected);
  scale(changed, "sub_norm.weight", 1.5f);
  EXPECT_NE(logits(changed), expected);
  const Graph graph = imported(plain);
  size_t squared = 0;
  for (const auto& step : graph.main_entry().steps) {
    squared += step->op == schema::OpCode::Activate &&
               step->options.AsActivateOptions()->activation == schema::Activation::ReluSquared;
  }
  EXPECT_EQ(squared, graph.model.rings.size()) << "one in each layer";
}

TEST(Decoders, BitnetsMatricesAreRoundedToThreeValuesWhenTheyAreStoredAsFloats) {
  EditableCheckpoint checkpoint = bitnet();
  checkpoint.config["quantization_config"] = {{"quant_method", "bitnet"},
                                              {"quantization_mode", "online"},
                                              {"linear_class", "autobitlinear"}};
  const Graph graph = imported(checkpoint);
  EXPECT_EQ(graph.ternary.size(), 7 * graph.model.rings.size());
  for (const uint32_t index : graph.ternary) {
    const std::vector<float>& stored = checkpoint.tensors.at(graph.tensor(index).name).values;
    const std::vector<float> values = graph.weights.at(index).values();
    double mean = 0;
    for (const float value : stored) mean += std::fabs(value);
    mean /= static_cast<double>(stored.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const double code = std::fabs(stored[i]) > mean / 2 ? (stored[i] > 0 ? 1 : -1) : 0;
      ASSERT_NEAR(values[i], code * mean, 1e-6) << graph.tensor(index).name << " " << i;
    }
  }
}

TEST(Decoders, BitnetsFormsThatAreNotReadAreRefused) {
  const Refusal cases[] = {
      {"bitnet_llama/bl1", [](Json& c) { c["quantization_config"]["use_rms_norm"] = true; },
       "use_rms_norm is true"},
      {"bitnet_llama/bl1", [](Json& c) { c["quantization_config"]["linear_class"] = "other"; },
       "expected one of: bitlinear, autobitlinear"},
      {"bitnet_llama/bl1", [](Json& c) { c["quantization_config"]["bits"] = 2; },
       "unknown key quantization_config.bits"},
      {"bitnet_llama/bl1",
       [](Json& c) { c["quantization_config"]["quantization_mode"] = "online"; },
       "expected F32, F16 or BF16"},
      {"bitnet_llama/bl1", [](Json& c) { c["intermediate_size"] = 84; }, "expected U8[21, 48]"},
      {"bitnet_llama/bl1", [](Json& c) { c["quantization_config"]["quant_method"] = "hqq"; },
       "stored by hqq"},
  };
  for (const Refusal& refused : cases) {
    SCOPED_TRACE(refused.words);
    // The tensors are not floats, so that only the configuration is written anew.
    const TemporaryDirectory directory;
    const std::string from = testing::source_dir() + "/tests/golden/" + refused.pack;
    std::filesystem::copy(from, directory / "in");
    Json config = Json::parse(std::ifstream(from + "/config.json"));
    refused.edit(config);
    std::ofstream(directory / "in/config.json") << config.dump();
    std::string words = "nothing was refused";
    try {
      import_checkpoint(Checkpoint(directory / "in"), {});
    } catch (const InputError& error) {
      words = error.what();
    }
    EXPECT_NE(words.find(refused.words), std::string::npos) << words;
  }
}

TEST(Decoders, PackedProjectionsAreTheSameAsThoseApart) {
  EditableCheckpoint packed = golden("phi3/p3b_partial_sliding");
  packed.config["partial_rotary_factor"] = 1.0;
  packed.config["sliding_window"] = nullptr;
  EditableCheckpoint apart = packed;
  apart.config["model_type"] = "llama";
  for (const char* key :
       {"partial_rotary_factor", "sliding_window", "original_max_position_embeddings"}) {
    apart.config.erase(key);
  }
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    const std::string qkv = layer + "self_attn.qkv_proj.weight";
    cut(apart, qkv, layer + "self_attn.q_proj.weight", 0, 32);
    cut(apart, qkv, layer + "self_attn.k_proj.weight", 32, 16);
    cut(apart, qkv, layer + "self_attn.v_proj.weight", 48, 16);
    const std::string gate_up = layer + "mlp.gate_up_proj.weight";
    cut(apart, gate_up, layer + "mlp.gate_proj.weight", 0, 48);
    cut(apart, gate_up, layer + "mlp.up_proj.weight", 48, 48);
    apart.tensors.erase(qkv);
    apart.tensors.erase(gate_up);
  }
  EXPECT_EQ(logits(packed), logits(apart));
}

TEST(Decoders, NormsWithoutWeightsAreNormsWithOnesAndZeros) {
  EditableCheckpoint stored = golden("opt/op2_postnorm_proj"), none = stored;
  for (auto& [name, tensor] : stored.tensors) {
    if (name.find("layer_norm") == std::string::npos) continue;
    std::fill(tensor.values.begin(), tensor.values.end(), name.ends_with("weight") ? 1.0f : 0.0f);
    none.tensors.erase(name);
  }
  none.config["layer_norm_elementwise_affine"] = false;
  expect_near(logits(stored), logits(none));
}

TEST(Decoders, GptNeoxHalvesMayFollowEachOther) {
  EditableCheckpoint parallel = golden("gpt_neox/nx1"), sequential = parallel;
  sequential.config["use_parallel_residual"] = false;
  EXPECT_NE(logits(parallel), logits(sequential));
  // When attention gives nothing there is no difference.
  for (EditableCheckpoint* checkpoint : {&parallel, &sequential}) {
    for (auto& [name, tensor] : checkpoint->tensors) {
      if (name.find("attention.dense") == std::string::npos) continue;
      std::fill(tensor.values.begin(), tensor.values.end(), 0.0f);
    }
  }
  expect_near(logits(parallel), logits(sequential));
}

TEST(Decoders, AHeadUnderItsNewerNameIsTheSameHead) {
  const EditableCheckpoint stored = golden("gpt_neox/nx1");
  EditableCheckpoint renamed = stored;
  auto head = renamed.tensors.extract("embed_out.weight");
  ASSERT_FALSE(head.empty());
  head.key() = "lm_head.weight";
  renamed.tensors.insert(std::move(head));
  EXPECT_EQ(logits(stored), logits(renamed));
}

TEST(Decoders, SinceTransformers442AWindowHasOneKeyLess) {
  for (const char* pack : {"mistral/ms1", "phi3/p3b_partial_sliding"}) {
    EditableCheckpoint checkpoint = golden(pack);
    const auto window = checkpoint.config["sliding_window"].get<uint32_t>();
    for (const auto& [version, keys] : {std::pair{"4.39.3", window + 1},
                                        {"4.41.2", window + 1},
                                        {"4.42.0", window},
                                        {"5.23.0", window},
                                        {"", window}}) {
      checkpoint.config["transformers_version"] = version;
      // What a query sees besides itself.
      EXPECT_EQ(imported(checkpoint).model.rings[0]->capacity, keys - 1) << pack << version;
    }
  }
}

TEST(Decoders, GemmasLogitsMayHaveACap) {
  EditableCheckpoint checkpoint = golden("gemma3_text/gm2_legacy_linear");
  std::vector<float> expected = logits(checkpoint);
  for (float& value : expected) value = 2.5f * std::tanh(value / 2.5f);
  checkpoint.config["final_logit_softcapping"] = 2.5;
  expect_near(logits(checkpoint), expected);
}

}  // namespace
}  // namespace oxbow::convert
