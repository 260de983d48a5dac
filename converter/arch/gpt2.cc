// GPT-2 as in Hugging Face transformers: learned positions, norms before each half of a layer, and
// matrices stored the other way round than in nn.Linear, [inputs, outputs].

#include "converter/causal_decoder.h"

namespace oxbow::convert {
namespace {

struct Gpt2 {
  CausalShape shape;
  uint32_t width, inner;
  float epsilon;
  schema::Activation activation;
  bool scale, scale_by_layer, tied;
  std::string prefix;
};

Gpt2 read(const Checkpoint& checkpoint) {
  Gpt2 config;
  CausalShape& shape = config.shape;
  shape.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  shape.layers = checkpoint.size("n_layer", 1, kMaxLayers);
  shape.length_key = checkpoint.has_key("n_positions") ? "n_positions" : "n_ctx";
  shape.length = checkpoint.size(shape.length_key, 1, kMaxSize);
  shape.position_table = true;
  config.width = checkpoint.size("n_embd", 1, kMaxSize);
  shape.heads = shape.kv_heads = checkpoint.size("n_head", 1, config.width);
  require_multiple("n_embd", config.width, "n_head", shape.heads);
  shape.head_width = config.width / shape.heads;
  config.inner = checkpoint.size("n_inner", 1, kMaxSize, 4 * config.width);
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_epsilon", 1e-12, 1, 1e-5));
  config.activation = read_activation(checkpoint, "activation_function", "gelu_new");
  config.scale = checkpoint.flag("scale_attn_weights", true);
  config.scale_by_layer = checkpoint.flag("scale_attn_by_inverse_layer_idx", false);
  config.tied = checkpoint.flag("tie_word_embeddings", true);
  config.prefix = optional_prefix(checkpoint, "transformer.", "wte.weight");
  // The order of float32 operations, an older name of n_positions, and the head of GPT2DoubleHeads.
  checkpoint.ignore_keys({"reorder_and_upcast_attn", "n_ctx", "summary_type", "summary_use_proj",
                          "summary_activation", "summary_first_dropout", "summary_proj_to_labels"});
  ignore_common_keys(checkpoint);
  return config;
}

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const Gpt2& config,
          Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        decoder_(checkpoint, options, config.shape, graph) {}

  void build() {
    GraphBuilder& builder = decoder_.builder();
    const uint32_t words =
        parts().matrix(tensor("wte.weight"), config_.shape.vocabulary, config_.width);
    const uint32_t places =
        parts().matrix(tensor("wpe.weight"), config_.shape.length, config_.width);
    uint32_t x = builder.add("embedded", builder.embedding("words", builder.tokens(), words),
                             builder.embedding("places", decoder_.positions(), places));
    for (uint32_t i = 0; i < config_.shape.layers; ++i) {
      decoder_.layer_input(i, x);
      x = layer(i, x);
    }
    const uint32_t last = norm("final_norm", builder.take_rows("tail", x), "ln_f");
    decoder_.logits(last, head(words));
    decoder_.describe({{"d_ff", config_.inner}, {"d_model", config_.width}});
  }

 private:
  Parts& parts() { return decoder_.parts(); }
  std::string tensor(const std::string& name) const { return config_.prefix + name; }
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    return parts().layer_norm(name, x, tensor(of), config_.width, config_.epsilon);
  }

  uint32_t head(uint32_t words) {
    if (!config_.tied) {
      return parts().matrix("lm_head.weight", config_.shape.vocabulary, config_.width);
    }
    checkpoint_.ignore_tensor("lm_head.weight");
    return words;
  }

  /// Outputs [first, first + count) of a layer whose matrix is [in, out].
  uint32_t conv1d(const std::string& name, uint32_t x, const std::string& of, uint32_t in,
                  uint32_t out, uint32_t first, uint32_t count) {
    const std::string weight = tensor(of) + ".weight", bias = tensor(of) + ".bias";
    const std::vector<float> matrix = transposed(checkpoint_.matrix(weight, in, out), in, out);
    GraphBuilder& builder = decoder_.builder();
    const std::string part = count == out ? "" : "." + std::to_string(first / count);
    return builder.linear(
        name, x, builder.weight(weight + part, count, in, rows_of(matrix, in, first, count)),
        builder.weight(bias + part, 1, count,
                       rows_of(checkpoint_.vector(bias, out), 1, first, count)));
  }
  uint32_t conv1d(const std::string& name, uint32_t x, const std::string& of, uint32_t in,
                  uint32_t out) {
    return conv1d(name, x, of, in, out, 0, out);
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string of = "h." + std::to_string(index) + ".";
    const uint32_t width = config_.width;
    GraphBuilder& builder = decoder_.builder();
    // Masks that old checkpoints store.
    checkpoint_.ignore_tensor(tensor(of + "attn.bias"));
    checkpoint_.ignore_tensor(tensor(of + "attn.masked_bias"));

    const uint32_t z = norm(name + ".normed", x, of + "ln_1");
    const auto project = [&](const char* what, uint32_t part) {
      return conv1d(name + what, z, of + "attn.c_attn", width, 3 * width, part * width, width);
    };
    const uint32_t q = project(".q", 0), k = project(".k", 1), v = project(".v", 2);
    const float base = config_.scale ? attention_scale(config_.shape.head_width) : 1.0f;
    const float scale = config_.scale_by_layer ? base / static_cast<float>(index + 1) : base;
    const uint32_t attended = decoder_.attend(index, q, k, v, scale);
    const uint32_t y =
        builder.add(name + ".attended", x,
                    conv1d(name + ".attention.out", attended, of + "attn.c_proj", width, width));

    const uint32_t normed = norm(name + ".ff.normed", y, of + "ln_2");
    const uint32_t wide = conv1d(name + ".ff.wide", normed, of + "mlp.c_fc", width, config_.inner);
    const uint32_t active = builder.activate(name + ".ff.active", wide, config_.activation);
    return builder.add(name + ".out", y,
                       conv1d(name + ".ff.out", active, of + "mlp.c_proj", config_.inner, width));
  }

  const Checkpoint& checkpoint_;
  const Gpt2& config_;
  CausalDecoder decoder_;
};

}  // namespace

void import_gpt2(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Gpt2 config = read(checkpoint);
  Builder(checkpoint, options, config, graph).build();
}

}  // namespace oxbow::convert
