#include "converter/post_norm_encoder.h"

#include <cmath>

#include "converter/errors.h"

namespace oxbow::convert {
namespace {

constexpr const char* kWords = "embeddings.word_embeddings.weight";

}  // namespace

PostNormConfig read_post_norm_config(const Checkpoint& checkpoint, const ImportOptions& options,
                                     uint32_t unused_positions) {
  PostNormConfig config;
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.types = checkpoint.size("type_vocab_size", 1, kMaxSize, 2);
  config.positions =
      checkpoint.size("max_position_embeddings", unused_positions + 1, kMaxSize) - unused_positions;
  config.width = config.embedding_width = checkpoint.size("hidden_size", 1, kMaxSize);
  config.heads = checkpoint.size("num_attention_heads", 1, config.width);
  require_multiple("hidden_size", config.width, "num_attention_heads", config.heads);
  config.inner_width = checkpoint.size("intermediate_size", 1, kMaxSize);
  config.layers = checkpoint.size("num_hidden_layers", 1, kMaxLayers);
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-20, 1, 1e-12));
  config.activation = read_activation(checkpoint, "hidden_act", "gelu");
  config.tied = checkpoint.flag("tie_word_embeddings", true);
  require_flag(checkpoint, "is_decoder", false);
  require_flag(checkpoint, "add_cross_attention", false);
  require_flag(checkpoint, "is_encoder_decoder", false);
  config.max_segment = options.max_segment == 0 ? config.positions : options.max_segment;
  if (config.max_segment > config.positions) {
    throw InputError("--max-segment is " + std::to_string(config.max_segment) +
                     ", expected at most the model's positions, " +
                     std::to_string(config.positions));
  }
  // How much is computed at a time, and sizes of heads of old that are not there.
  checkpoint.ignore_keys({"chunk_size_feed_forward", "directionality", "gradient_checkpointing",
                          "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
                          "pooler_size_per_head", "pooler_type"});
  ignore_common_keys(checkpoint);
  return config;
}

PostNormEncoder::PostNormEncoder(const Checkpoint& checkpoint, const PostNormConfig& config,
                                 const std::string& base, Graph& graph)
    : checkpoint_(checkpoint),
      config_(config),
      graph_(graph),
      builder_(graph),
      parts_(checkpoint, builder_),
      prefix_(optional_prefix(checkpoint, base, kWords)) {
  GraphBuilder::Entry entry;
  entry.name = "encode";
  entry.vocabulary = config.vocabulary;
  entry.max_segment = config.max_segment;
  entry.starts = true;
  builder_.begin_entry(entry);
  attention_mask_ = builder_.input("attention_mask", 2, 1);
  // Buffers that only count.
  checkpoint.ignore_tensor(prefix_ + "embeddings.position_ids");
  checkpoint.ignore_tensor(prefix_ + "embeddings.token_type_ids");
}

uint32_t PostNormEncoder::norm(const std::string& name, uint32_t x, const std::string& prefix,
                               uint32_t width) {
  // The oldest checkpoints have TensorFlow's names.
  if (!checkpoint_.has_tensor(prefix + ".gamma")) {
    return parts_.layer_norm(name, x, prefix, width, config_.epsilon);
  }
  return builder_.layer_norm(name, x, parts_.vector(prefix + ".gamma", width),
                             parts_.vector(prefix + ".beta", width), config_.epsilon);
}

uint32_t PostNormEncoder::embeddings(uint32_t position_ids) {
  const uint32_t width = config_.embedding_width;
  const std::string prefix = prefix_ + "embeddings.";
  const uint32_t type_ids = builder_.input("token_type_ids", config_.types, 0);
  const uint32_t words = builder_.embedding(
      "words", builder_.tokens(), parts_.matrix(prefix_ + kWords, config_.vocabulary, width));
  const uint32_t types = builder_.embedding(
      "types", type_ids,
      parts_.matrix(prefix + "token_type_embeddings.weight", config_.types, width));
  uint32_t sum = builder_.add("words.types", words, types);
  if (position_ids != GraphBuilder::kNone) {
    const uint32_t rows = checkpoint_.size("max_position_embeddings", 1, kMaxSize);
    const uint32_t table = parts_.matrix(prefix + "position_embeddings.weight", rows, width);
    sum = builder_.add("embedded", sum, builder_.embedding("places", position_ids, table));
  }
  return norm("embeddings", sum, prefix + "LayerNorm", width);
}

uint32_t PostNormEncoder::layers(uint32_t x, const Attend& attend) {
  builder_.debug_output(x, "hidden_states.0");
  for (uint32_t i = 0; i < config_.layers; ++i) {
    const std::string prefix = prefix_ + "encoder.layer." + std::to_string(i) + ".";
    const Layer layer = {i, "layer" + std::to_string(i), prefix + "attention.self.", x};
    const uint32_t attended = attend(layer);
    const uint32_t projected =
        parts_.linear(layer.name + ".attention.out", attended, prefix + "attention.output.dense",
                      config_.width, config_.width);
    const uint32_t sum = builder_.add(layer.name + ".attention.sum", x, projected);
    const uint32_t y = norm(layer.name + ".attention.normed", sum,
                            prefix + "attention.output.LayerNorm", config_.width);
    x = feed_forward(layer, prefix, y);
    builder_.debug_output(x);
  }
  return x;
}

uint32_t PostNormEncoder::feed_forward(const Layer& layer, const std::string& prefix, uint32_t x) {
  const std::string name = layer.name + ".ff";
  const uint32_t wide = parts_.linear(name + ".wide", x, prefix + "intermediate.dense",
                                      config_.width, config_.inner_width);
  const uint32_t active = builder_.activate(name + ".active", wide, config_.activation);
  const uint32_t narrow = parts_.linear(name + ".out", active, prefix + "output.dense",
                                        config_.inner_width, config_.width);
  const uint32_t sum = builder_.add(name + ".sum", x, narrow);
  return norm("hidden_states." + std::to_string(layer.index + 1), sum, prefix + "output.LayerNorm",
              config_.width);
}

uint32_t PostNormEncoder::project(const Layer& layer, const std::string& which, uint32_t x) {
  return parts_.linear(layer.name + "." + which, x, layer.prefix + which, config_.width,
                       config_.width);
}

GraphBuilder::Attention PostNormEncoder::full_attention(uint32_t k, uint32_t v) const {
  GraphBuilder::Attention attention;
  attention.heads = attention.kv_heads = config_.heads;
  attention.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_width())));
  attention.sources = {{k, v}};
  attention.pattern.kind = schema::PatternKind::Full;
  attention.key_mask = attention_mask_;
  return attention;
}

uint32_t PostNormEncoder::pooled(uint32_t x) {
  const uint32_t dense = parts_.linear("pooler.dense", builder_.first_row("pooler.token", x),
                                       prefix_ + "pooler.dense", config_.width, config_.width);
  const uint32_t y = builder_.activate("pooler_output", dense, schema::Activation::Tanh);
  builder_.debug_output(y);
  return y;
}

void PostNormEncoder::classify(uint32_t x, const std::string& prefix) {
  const uint32_t classes = stored_rows(checkpoint_, prefix + ".weight");
  graph_.model.task = schema::Task::Classify;
  builder_.logits(x, parts_.matrix(prefix + ".weight", classes, config_.width),
                  parts_.vector(prefix + ".bias", classes));
  graph_.model.metadata->labels = checkpoint_.labels(classes);
}

void PostNormEncoder::fill_mask(uint32_t x, const MaskedHead& head) {
  const uint32_t width = config_.embedding_width;
  graph_.model.task = schema::Task::FillMask;
  const uint32_t dense =
      parts_.linear("head.dense", builder_.take_rows("tail", x), head.dense, config_.width, width);
  const uint32_t active = builder_.activate("head.active", dense, head.activation);
  const uint32_t normed = norm("head.normed", active, head.norm, width);
  const std::string matrix = config_.tied ? prefix_ + kWords : head.decoder + ".weight";
  const bool own_bias = checkpoint_.has_tensor(head.bias);
  const std::string bias = own_bias ? head.bias : head.decoder + ".bias";
  // Other names of the same numbers.
  if (config_.tied) checkpoint_.ignore_tensor(head.decoder + ".weight");
  if (own_bias) checkpoint_.ignore_tensor(head.decoder + ".bias");
  builder_.logits(normed, parts_.matrix(matrix, config_.vocabulary, width),
                  parts_.vector(bias, config_.vocabulary));
}

void PostNormEncoder::finish(uint32_t x, const MaskedHead& masked, schema::Activation first_token) {
  write_sizes();
  uint32_t pooler_output = GraphBuilder::kNone;
  if (checkpoint_.has_tensor(prefix_ + "pooler.dense.weight")) pooler_output = pooled(x);
  builder_.debug_output(x, "last_hidden_state");
  if (checkpoint_.has_tensor("classifier.out_proj.weight")) {
    const uint32_t dense =
        parts_.linear("classifier.dense", builder_.first_row("classifier.token", x),
                      "classifier.dense", config_.width, config_.width);
    classify(builder_.activate("classifier.active", dense, first_token), "classifier.out_proj");
  } else if (checkpoint_.has_tensor("classifier.weight")) {
    if (pooler_output == GraphBuilder::kNone) {
      throw InputError("tensor classifier.weight without " + prefix_ +
                       "pooler.dense.weight classifies every token, which is not supported: "
                       "expected a classifier of the whole text");
    }
    classify(pooler_output, "classifier");
  } else if (checkpoint_.has_tensor(masked.dense + ".weight")) {
    fill_mask(x, masked);
  } else {
    graph_.model.task = schema::Task::Encode;
    builder_.output("last_hidden_state", x);
  }
}

void PostNormEncoder::write_sizes() {
  write_metadata(checkpoint_, graph_,
                 {{"hidden_size", config_.width},
                  {"intermediate_size", config_.inner_width},
                  {"max_segment", config_.max_segment},
                  {"num_attention_heads", config_.heads},
                  {"num_hidden_layers", config_.layers},
                  {"vocabulary", config_.vocabulary}});
  read_generation(checkpoint_, config_.vocabulary, graph_);
}

}  // namespace oxbow::convert
