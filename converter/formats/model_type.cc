#include "converter/formats/model_type.h"

#include <algorithm>
#include <vector>

namespace oxbow::convert {
namespace {

struct Sign {
  const char* model_type;
  /// All of these are there, with or without the model's own prefix.
  std::vector<const char*> tensors;
  const char* prefix = "";
};

/// The more special ones first: Qwen is Llama with more.
const std::vector<Sign>& signs() {
  static const std::vector<Sign> table = {
      {"qwen3", {"layers.0.self_attn.q_norm.weight", "layers.0.mlp.gate_proj.weight"}, "model."},
      {"qwen2", {"layers.0.self_attn.q_proj.bias", "layers.0.mlp.gate_proj.weight"}, "model."},
      {"llama", {"layers.0.self_attn.q_proj.weight", "layers.0.mlp.gate_proj.weight"}, "model."},
      {"gpt2", {"h.0.attn.c_attn.weight", "wpe.weight"}, "transformer."},
      {"gpt_neox", {"layers.0.attention.query_key_value.weight"}, "gpt_neox."},
      {"distilbert", {"transformer.layer.0.attention.q_lin.weight"}, "distilbert."},
      {"albert",
       {"encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight"},
       "albert."},
      {"electra", {"electra.encoder.layer.0.attention.self.query.weight"}},
      {"bert",
       {"encoder.layer.0.attention.self.query.weight", "embeddings.token_type_embeddings.weight"},
       "bert."},
      {"switch_transformers",
       {"encoder.block.0.layer.0.SelfAttention.q.weight",
        "encoder.block.1.layer.1.mlp.router.classifier.weight"}},
      {"t5", {"encoder.block.0.layer.0.SelfAttention.q.weight"}},
      {"mamba", {"layers.0.mixer.x_proj.weight", "layers.0.mixer.A_log"}, "backbone."},
  };
  return table;
}

}  // namespace

std::string model_type_of(const std::function<bool(const std::string&)>& has_tensor) {
  for (const Sign& sign : signs()) {
    const bool all = std::all_of(sign.tensors.begin(), sign.tensors.end(), [&](const char* name) {
      return has_tensor(name) || has_tensor(std::string(sign.prefix) + name);
    });
    if (all) return sign.model_type;
  }
  return "";
}

}  // namespace oxbow::convert
