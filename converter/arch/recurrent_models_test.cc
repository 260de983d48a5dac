// What the importers of models with a small past refuse, and what they take that the golden packs do not hold.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "converter/testing/imports.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

using testing::EditableCheckpoint;
using testing::golden;
using testing::imported;
using testing::refusal;

struct Refused {
  const char *pack, *key, *words;
  nlohmann::json value;
};

TEST(RecurrentModels, RefuseWhatWouldChangeTheResults) {
  const Refused cases[] = {
      {"rwkv/rw2_rescale", "attention_hidden_size", "attention.key.weight has shape", 48},
      {"rwkv/rw2_rescale", "add_cross_attention", "add_cross_attention is true", true},
      {"rwkv/rw2_rescale", "head_size", "unknown key head_size", 64},
      {"mamba/mb1", "intermediate_size", "intermediate_size is 65, expected", 65},
      {"mamba/mb1", "time_step_rank", "x_proj.weight has shape", 3},
      {"mamba/mb1", "time_step_rank", "time_step_rank is \"some\"", "some"},
      {"mamba/mb1", "rms_norm", "rms_norm is false, expected true", false},
      {"recurrent_gemma/rg1", "block_types", "expected recurrent or attention", {"conv"}},
      {"recurrent_gemma/rg1", "lru_width", "expected a multiple of num_attention_heads", 30},
      {"recurrent_gemma/rg1", "embeddings_scale_by_sqrt_dim", "expected true", false},
      {"lfm2/lf2_bias", "layer_types", "expected num_hidden_layers, 3", {"conv"}},
      {"lfm2/lf2_bias", "layer_types", "expected conv or full_attention", {"conv", "conv", "x"}},
      {"lfm2/lf2_bias", "block_use_swiglu", "expected true", false},
      {"lfm2/lf2_bias", "num_key_value_heads", "expected a multiple", 2},
      {"xlstm/xl2_bias", "embedding_dim", "embedding_dim is 65, expected hidden_size, 64", 65},
      {"xlstm/xl2_bias", "weight_mode", "expected one of: single, fused", "double"},
      {"xlstm/xl2_bias", "num_heads", "expected a multiple of num_heads", 7},
      {"gtrxl/gt1", "embedding_dim", "expected a multiple of sine and cosine", 31},
      {"gtrxl/gt1", "use_embedding_layer", "expected a multiple of embedding_dim", false},
      {"labml_aft/af1", "seq_len", "pos_bias has shape [32, 32]", 31},
      {"labml_feedback/fb1_kv", "heads", "expected a multiple of heads", 7},
      {"labml_feedback/fb1_kv", "P", "key_pos_embeddings has shape [48, 5, 8]", 47},
  };
  for (const Refused& test : cases) {
    EditableCheckpoint checkpoint = golden(test.pack);
    checkpoint.config[test.key] = test.value;
    const std::string message = refusal(checkpoint);
    EXPECT_NE(message.find(test.words), std::string::npos)
        << test.pack << " " << test.key << ": " << message;
  }
  ImportOptions options;
  options.max_segment = 2;
  EXPECT_NE(refusal(golden("labml_feedback/fb1_kv"), options).find("one by one"),
            std::string::npos);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  if (const size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

TEST(Rwkv, BlinkDlsLayoutNeedsNoSizes) {
  EditableCheckpoint hugging_face = golden("rwkv/rw2_rescale"), own;
  hugging_face.config["rescale_every"] = 0;
  own.config = {{"model_type", "rwkv"}};
  for (const auto& [name, tensor] : hugging_face.tensors) {
    std::string other = replaced(name, "rwkv.embeddings.", "emb.");
    other = replaced(other, "rwkv.", "");
    other = replaced(other, "pre_ln", "ln0");
    other = replaced(other, ".attention.", ".att.");
    other = replaced(other, ".feed_forward.", ".ffn.");
    for (const char* mix : {"key", "value", "receptance"}) {
      other = replaced(other, std::string("time_mix_") + mix, std::string("time_mix_") + mix[0]);
    }
    own.tensors[other] = tensor;
  }
  const Graph a = imported(hugging_face), b = imported(own);
  ASSERT_EQ(a.main_entry().steps.size(), b.main_entry().steps.size());
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (const auto& [index, weight] : a.weights) {
    EXPECT_EQ(weight.values(), b.weights.at(index).values());
  }
}

TEST(Mamba, TheRankOfTimeStepsMayBeLeftToTheWidth) {
  EditableCheckpoint checkpoint = golden("mamba/mb1");
  checkpoint.config["time_step_rank"] = "auto";
  EXPECT_EQ(refusal(checkpoint), "nothing was refused");
}

TEST(Lfm2, LayersThatAttendMayBeListed) {
  EditableCheckpoint checkpoint = golden("lfm2/lf2_bias");
  checkpoint.config["layer_types"] = nullptr;
  checkpoint.config["full_attn_idxs"] = {1};
  EXPECT_EQ(refusal(checkpoint), "nothing was refused");
  checkpoint.config["full_attn_idxs"] = {0};
  EXPECT_NE(refusal(checkpoint).find("layers.0.self_attn.q_proj.weight is missing"),
            std::string::npos);
}

TEST(Xlstm, FusedWeightsAreTheSingleOnesSideBySide) {
  EditableCheckpoint single = golden("xlstm/xl2_bias"), fused = single;
  fused.config["weight_mode"] = "fused";
  const auto join = [&](const std::string& prefix, const std::vector<std::string>& parts,
                        const std::string& to) {
    for (const std::string suffix : {".weight", ".bias"}) {
      auto& joined = fused.tensors[prefix + to + suffix];
      for (const std::string& part : parts) {
        const auto from = fused.tensors.at(prefix + part + suffix);
        const uint64_t rows = joined.shape.empty() ? 0 : joined.shape[0];
        joined.shape = from.shape;
        joined.shape[0] += rows;
        joined.values.insert(joined.values.end(), from.values.begin(), from.values.end());
        fused.tensors.erase(prefix + part + suffix);
      }
    }
  };
  const std::string layer = "backbone.blocks.0.";
  join(layer + "mlstm_layer.", {"q", "k", "v", "ogate_preact"}, "qkv_opreact");
  join(layer + "mlstm_layer.", {"igate_preact", "fgate_preact"}, "ifgate_preact");
  join(layer + "ffn.", {"proj_up_gate", "proj_up"}, "proj_up_gate_z");
  // The same weights, in whichever order.
  const auto sorted = [](const Graph& graph) {
    std::multiset<std::vector<float>> all;
    for (const auto& [index, weight] : graph.weights) all.insert(weight.values());
    return all;
  };
  EXPECT_EQ(sorted(imported(single)), sorted(imported(fused)));
}

TEST(TransformerXl, LearnedPositionsAreByDistanceFromTheLast) {
  const nlohmann::json config = {{"model_type", "kimiyoung_transformer_xl"},
                                 {"attn_type", 1},
                                 {"n_token", 5},
                                 {"d_model", 3},
                                 {"n_head", 1},
                                 {"d_head", 2},
                                 {"d_inner", 4},
                                 {"n_layer", 2},
                                 {"tgt_len", 2},
                                 {"mem_len", 3},
                                 {"clamp_len", 4}};
  EditableCheckpoint checkpoint;
  checkpoint.config = config;
  const auto add = [&](const std::string& name, std::vector<uint64_t> shape) {
    size_t count = 1;
    for (const uint64_t dimension : shape) count *= dimension;
    std::vector<float> values;
    for (size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
    checkpoint.tensors[name] = {shape, values};
  };
  add("word_emb.emb_layers.0.weight", {5, 3});
  add("crit.out_layers.0.bias", {5});
  add("r_emb", {2, 5, 1, 2});
  add("r_bias", {2, 5, 1});
  add("r_w_bias", {2, 1, 2});
  for (const std::string layer : {"layers.0.", "layers.1."}) {
    add(layer + "dec_attn.qkv_net.weight", {6, 3});
    add(layer + "dec_attn.o_net.weight", {3, 2});
    for (const std::string norm : {"dec_attn.", "pos_ff."}) {
      add(layer + norm + "layer_norm.weight", {3});
      add(layer + norm + "layer_norm.bias", {3});
    }
    add(layer + "pos_ff.CoreNet.0.weight", {4, 3});
    add(layer + "pos_ff.CoreNet.0.bias", {4});
    add(layer + "pos_ff.CoreNet.3.weight", {3, 4});
    add(layer + "pos_ff.CoreNet.3.bias", {3});
  }
  const Graph graph = imported(checkpoint);
  bool found = false;
  for (const auto& [index, weight] : graph.weights) {
    if (graph.tensor(index).name != "layers.1.dec_attn.r_bias") continue;
    found = true;
    // The second layer's are 5 to 9, the last of them that of distance 0; clamp_len keeps four.
    EXPECT_EQ(weight.values(), (std::vector<float>{9, 8, 7, 6}));
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace oxbow::convert
