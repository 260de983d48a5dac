// BLOOM as in Hugging Face transformers: ALiBi, a norm behind the embeddings, and projections of
// queries, keys and values packed head by head.

#include "converter/causal_decoder.h"

namespace oxbow::convert {
namespace {

struct Bloom {
  CausalShape shape;
  uint32_t width;
  float epsilon;
  bool residual_after_norm, tied;
  std::string prefix;
};

Bloom read(const Checkpoint& checkpoint) {
  Bloom config;
  CausalShape& shape = config.shape;
  // Each size has had two names.
  const auto key = [&](const char* name, const char* other) {
    return checkpoint.has_key(other) && !checkpoint.has_key(name) ? other : name;
  };
  shape.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  shape.layers = checkpoint.size(key("n_layer", "num_hidden_layers"), 1, kMaxLayers);
  config.width = checkpoint.size(key("hidden_size", "n_embed"), 1, kMaxSize / 4);
  shape.heads = shape.kv_heads =
      checkpoint.size(key("n_head", "num_attention_heads"), 1, config.width);
  require_multiple("hidden_size", config.width, "n_head", shape.heads);
  shape.head_width = config.width / shape.heads;
  // Any length will do with ALiBi; this is the one of training, in some configurations.
  if (checkpoint.has_key("seq_length")) {
    shape.length_key = "seq_length";
    shape.length = checkpoint.size("seq_length", 1, kMaxSize, kDefaultContext);
  }
  shape.slopes = alibi_slopes(shape.heads);
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_epsilon", 1e-12, 1, 1e-5));
  config.residual_after_norm = checkpoint.flag("apply_residual_connection_post_layernorm", false);
  config.tied = checkpoint.flag("tie_word_embeddings", true);
  config.prefix = optional_prefix(checkpoint, "transformer.", "word_embeddings.weight");
  // How the sums of half precision were split over machines, and how training was.
  checkpoint.ignore_keys({"pretraining_tp", "slow_but_exact", "n_inner", "offset_alibi",
                          "skip_bias_add", "skip_bias_add_qkv", "bias_dropout_fusion",
                          "masked_softmax_fusion", "attention_softmax_in_fp32", "unk_token_id"});
  ignore_common_keys(checkpoint);
  return config;
}

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const Bloom& config,
          Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        decoder_(checkpoint, options, config.shape, graph) {}

  void build() {
    GraphBuilder& builder = decoder_.builder();
    const uint32_t vocabulary = config_.shape.vocabulary, width = config_.width;
    const uint32_t words =
        parts().matrix(config_.prefix + "word_embeddings.weight", vocabulary, width);
    uint32_t x = norm("embedded", builder.embedding("words", builder.tokens(), words),
                      "word_embeddings_layernorm");
    for (uint32_t i = 0; i < config_.shape.layers; ++i) {
      decoder_.layer_input(i, x);
      x = layer(i, x);
    }
    const uint32_t last = norm("final_norm", builder.take_rows("tail", x), "ln_f");
    if (config_.tied) checkpoint_.ignore_tensor("lm_head.weight");
    decoder_.logits(last,
                    config_.tied ? words : parts().matrix("lm_head.weight", vocabulary, width));
    decoder_.describe({{"d_model", width}});
  }

 private:
  Parts& parts() { return decoder_.parts(); }
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    return parts().layer_norm(name, x, config_.prefix + of, config_.width, config_.epsilon);
  }
  uint32_t linear(const std::string& name, uint32_t x, const std::string& of, uint32_t in,
                  uint32_t out) {
    return parts().linear(name, x, config_.prefix + of, in, out);
  }

  /// Queries (0), keys (1) or values (2): rows [head][part][head width] of a packed matrix.
  uint32_t project(const std::string& name, uint32_t x, const std::string& of, uint32_t part) {
    const uint32_t width = config_.width, head_width = config_.shape.head_width;
    const std::string weight = config_.prefix + of + ".weight",
                      bias = config_.prefix + of + ".bias";
    const std::vector<float> packed = checkpoint_.matrix(weight, 3 * width, width);
    const std::vector<float> packed_bias = checkpoint_.vector(bias, 3 * width);
    std::vector<float> matrix, vector;
    for (uint32_t head = 0; head < config_.shape.heads; ++head) {
      const size_t first = size_t{3 * head + part} * head_width;
      const std::vector<float> rows = rows_of(packed, width, first, head_width);
      const std::vector<float> biases = rows_of(packed_bias, 1, first, head_width);
      matrix.insert(matrix.end(), rows.begin(), rows.end());
      vector.insert(vector.end(), biases.begin(), biases.end());
    }
    GraphBuilder& builder = decoder_.builder();
    const std::string suffix = "." + std::to_string(part);
    return builder.linear(name, x, builder.weight(weight + suffix, width, width, std::move(matrix)),
                          builder.weight(bias + suffix, 1, width, std::move(vector)));
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string of = "h." + std::to_string(index) + ".";
    const uint32_t width = config_.width;
    GraphBuilder& builder = decoder_.builder();

    const uint32_t z = norm(name + ".normed", x, of + "input_layernorm");
    const std::string packed = of + "self_attention.query_key_value";
    const uint32_t q = project(name + ".q", z, packed, 0);
    const uint32_t k = project(name + ".k", z, packed, 1);
    const uint32_t v = project(name + ".v", z, packed, 2);
    const uint32_t attended =
        decoder_.attend(index, q, k, v, attention_scale(config_.shape.head_width));
    const uint32_t y = builder.add(
        name + ".attended", config_.residual_after_norm ? z : x,
        linear(name + ".attention.out", attended, of + "self_attention.dense", width, width));

    const uint32_t normed = norm(name + ".ff.normed", y, of + "post_attention_layernorm");
    const uint32_t wide =
        linear(name + ".ff.wide", normed, of + "mlp.dense_h_to_4h", width, 4 * width);
    const uint32_t active =
        builder.activate(name + ".ff.active", wide, schema::Activation::GeluTanh);
    return builder.add(
        name + ".out", config_.residual_after_norm ? normed : y,
        linear(name + ".ff.out", active, of + "mlp.dense_4h_to_h", 4 * width, width));
  }

  const Checkpoint& checkpoint_;
  const Bloom& config_;
  CausalDecoder decoder_;
};

}  // namespace

void import_bloom(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Bloom config = read(checkpoint);
  Builder(checkpoint, options, config, graph).build();
}

}  // namespace oxbow::convert
