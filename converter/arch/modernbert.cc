// ModernBERT (Warner et al. 2024) as in Hugging Face's library: norms before each half of a layer, rotary
// positions, gated feed-forward layers, and windows on both sides of a token in most layers.

#include "converter/blocks/decoder_config.h"
#include "converter/blocks/encoder.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

struct Config {
  EncoderConfig encoder;
  /// Tokens seen on each side in layers that do not see all.
  uint32_t window;
  std::vector<bool> sees_all;
  std::vector<float> frequencies, window_frequencies;
  MaskedHead head;
  Bias head_bias, decoder_bias;
  bool of_tokens = false;
  bool pools_mean;
};

void read_attention(const Checkpoint& checkpoint, const ImportOptions& options, Config& config) {
  const uint32_t layers = config.encoder.layers, width = config.encoder.layer.heads.width;
  config.window = checkpoint.size("local_attention", 1, kMaxSize, 128) / 2;
  const uint32_t every = checkpoint.size("global_attn_every_n_layers", 1, kMaxSize, 3);
  std::vector<bool> sees_all(layers);
  for (uint32_t i = 0; i < layers; ++i) sees_all[i] = i % every == 0;
  config.sees_all = read_layer_types(checkpoint, sees_all);
  RopeKeys global = {.theta = "global_rope_theta", .default_theta = 160000};
  RopeKeys local = {.theta = "local_rope_theta"};
  // null: the same everywhere.
  if (checkpoint.has_key(local.theta) && !checkpoint.has_value(local.theta)) local = global;
  if (checkpoint.has_key("rope_parameters")) {
    global.object = "rope_parameters.full_attention";
    local.object = "rope_parameters.sliding_attention";
  }
  CausalShape shape;
  shape.length = config.encoder.positions;
  shape.length_key = "max_position_embeddings";
  config.frequencies = read_rope(checkpoint, options, shape, width, global).frequencies;
  config.window_frequencies = read_rope(checkpoint, options, shape, width, local).frequencies;
}

/// Their tensors all have the names of a classifier of texts: only the class tells that it is one of tokens.
bool is_of_tokens(const Checkpoint& checkpoint) {
  bool of_tokens = false;
  for (const std::string& name : checkpoint.texts("architectures")) {
    of_tokens = of_tokens || name.ends_with("ForTokenClassification");
    if (!name.ends_with("ForQuestionAnswering")) continue;
    checkpoint.refuse("architectures has " + printable(name) +
                      ", which is not supported: expected a classifier of texts or tokens, masked "
                      "tokens or no head");
  }
  return of_tokens;
}

Config read(const Checkpoint& checkpoint, const ImportOptions& options) {
  Config config;
  EncoderConfig& encoder = config.encoder;
  TransformerLayer& layer = encoder.layer;
  const auto bias = [&](const char* key, bool fallback) {
    return checkpoint.flag(key, fallback) ? Bias::kAll : Bias::kNone;
  };
  encoder.base = "model.";
  encoder.words = "embeddings.tok_embeddings.weight";
  encoder.embedding_norm = "embeddings.norm";
  encoder.layers_prefix = "layers.";
  encoder.final_norm = "final_norm";
  encoder.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  encoder.positions = checkpoint.size("max_position_embeddings", 1, kMaxSize);
  encoder.max_segment = read_encoder_segment(options, encoder.positions);
  encoder.layers = checkpoint.size("num_hidden_layers", 1, kMaxLayers);
  layer.width = encoder.embedding_width = checkpoint.size("hidden_size", 1, kMaxSize);
  layer.heads = read_heads(checkpoint, "hidden_size", layer.width, "num_attention_heads");
  layer.inner = checkpoint.size("intermediate_size", 1, kMaxSize / 2);
  layer.norm = {.bias = bias("norm_bias", false),
                .epsilon = static_cast<float>(checkpoint.number("norm_eps", 1e-20, 1, 1e-5))};
  layer.activation = read_activation(checkpoint, "hidden_activation", "gelu");
  layer.qkv_bias = layer.out_bias = bias("attention_bias", false);
  layer.up_bias = layer.down_bias = bias("mlp_bias", false);
  layer.first_norm = false;
  layer.names = {.attention_norm = "attn_norm",
                 .feed_forward_norm = "mlp_norm",
                 .packed = "attn.Wqkv",
                 .attention_out = "attn.Wo",
                 .down = "mlp.Wo",
                 .gate_up = "mlp.Wi"};
  encoder.tied = checkpoint.flag("tie_word_embeddings", true);
  config.of_tokens = is_of_tokens(checkpoint);
  read_attention(checkpoint, options, config);
  config.head = {.dense = "head.dense",
                 .norm = "head.norm",
                 .decoder = "decoder",
                 .bias = "decoder.bias",
                 .activation = read_activation(checkpoint, "classifier_activation", "gelu")};
  config.head_bias = bias("classifier_bias", false);
  config.decoder_bias = bias("decoder_bias", true);
  config.pools_mean = checkpoint.choice("classifier_pooling", "cls", {"cls", "mean"}) == "mean";
  // Training, how attention is computed, and a key that the class inherited.
  checkpoint.ignore_keys({"deterministic_flash_attn", "embedding_dropout",
                          "initializer_cutoff_factor", "mlp_dropout", "position_embedding_type",
                          "reference_compile", "repad_logits_with_grad", "sparse_pred_ignore_index",
                          "sparse_prediction", "is_encoder_decoder", "gradient_checkpointing"});
  ignore_common_keys(checkpoint);
  return config;
}

class Model {
 public:
  Model(const Checkpoint& checkpoint, const Config& config, Graph& graph)
      : config_(config), encoder_(checkpoint, config.encoder, graph), builder_(encoder_.builder()) {
    angles_ = angles("rope", config.frequencies);
    window_angles_ = angles("rope.window", config.window_frequencies);
  }

  void build(const Checkpoint& checkpoint) {
    const uint32_t x =
        encoder_.layers(encoder_.embeddings(GraphBuilder::kNone),
                        [this](const LayerBuilder::Layer& layer) { return attend(layer); });
    encoder_.write_sizes();
    builder_.debug_output(x, "last_hidden_state");
    if (checkpoint.has_tensor("classifier.weight")) {
      classify(x);
    } else if (checkpoint.has_tensor("head.dense.weight")) {
      encoder_.fill_mask(x, config_.head, config_.head_bias, config_.decoder_bias);
    } else {
      encoder_.hidden_states(x);
    }
  }

 private:
  uint32_t angles(const std::string& name, const std::vector<float>& frequencies) {
    const uint32_t weight = builder_.weight(name + ".frequencies", 1,
                                            static_cast<uint32_t>(frequencies.size()), frequencies);
    return builder_.rope_angles(name + ".angles", weight);
  }

  uint32_t attend(const LayerBuilder::Layer& layer) {
    const bool sees_all = config_.sees_all[layer.index];
    const auto project = [&](LayerBuilder::Part part, const std::string& which) {
      return encoder_.layer_builder().project(layer, part, layer.name + "." + which);
    };
    const auto turned = [&](LayerBuilder::Part part, const std::string& which) {
      return builder_.rope(layer.name + "." + which + ".turned", project(part, which),
                           sees_all ? angles_ : window_angles_, config_.encoder.layer.heads.count,
                           false);
    };
    const uint32_t q = turned(LayerBuilder::kQueries, "query");
    const uint32_t k = turned(LayerBuilder::kKeys, "key");
    GraphBuilder::Attention attention =
        encoder_.full_attention(k, project(LayerBuilder::kValues, "value"));
    if (!sees_all) {
      attention.pattern.kind = schema::PatternKind::Window;
      attention.pattern.before = attention.pattern.after = config_.window;
    }
    return builder_.attention(layer.name + ".attention", q, attention);
  }

  void classify(uint32_t x) {
    const uint32_t width = config_.encoder.layer.width;
    LayerBuilder& layers = encoder_.layer_builder();
    const uint32_t dense = layers.linear("classifier.dense", config_.of_tokens ? x : pooled(x),
                                         config_.head.dense, width, width, config_.head_bias);
    const uint32_t active = builder_.activate("classifier.active", dense, config_.head.activation);
    const uint32_t normed = layers.norm("classifier.normed", active, config_.head.norm, width);
    if (config_.of_tokens) {
      encoder_.classify_tokens(normed, "classifier");
    } else {
      encoder_.classify(normed, "classifier");
    }
  }

  /// The first token, or the mean of all that are no padding: attention whose scores are all the same.
  uint32_t pooled(uint32_t x) {
    const uint32_t first = builder_.first_row("classifier.token", x);
    if (!config_.pools_mean) return first;
    GraphBuilder::Attention attention = encoder_.full_attention(x, x);
    attention.scale = 0;
    attention.own = false;
    return builder_.attention("classifier.mean", first, attention);
  }

  const Config& config_;
  Encoder encoder_;
  GraphBuilder& builder_;
  uint32_t angles_, window_angles_;
};

}  // namespace

void import_modernbert(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Config config = read(checkpoint, options);
  Model(checkpoint, config, graph).build(checkpoint);
}

}  // namespace oxbow::convert
