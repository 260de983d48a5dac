#include "converter/blocks/encoder.h"

#include <algorithm>

#include "host/errors.h"

namespace oxbow::convert {

uint32_t read_encoder_segment(const ImportOptions& options, uint32_t positions) {
  if (options.max_segment > positions) {
    throw InputError("--max-segment is " + std::to_string(options.max_segment) +
                     ", expected at most the model's positions, " + std::to_string(positions));
  }
  return options.max_segment == 0 ? positions : options.max_segment;
}

EncoderConfig read_bert_config(const Checkpoint& checkpoint, const ImportOptions& options,
                               uint32_t unused_positions, const std::string& activation) {
  EncoderConfig config;
  TransformerLayer& layer = config.layer;
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.types = checkpoint.size("type_vocab_size", 1, kMaxSize, 2);
  config.positions =
      checkpoint.size("max_position_embeddings", unused_positions + 1, kMaxSize) - unused_positions;
  layer.width = config.embedding_width = checkpoint.size("hidden_size", 1, kMaxSize);
  layer.heads = read_heads(checkpoint, "hidden_size", layer.width, "num_attention_heads");
  layer.inner = checkpoint.size("intermediate_size", 1, kMaxSize);
  config.layers = checkpoint.size("num_hidden_layers", 1, kMaxLayers);
  layer.norm.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-20, 1, 1e-12));
  layer.activation = read_activation(checkpoint, "hidden_act", activation);
  config.tied = checkpoint.flag("tie_word_embeddings", true);
  require_flag(checkpoint, "is_decoder", false);
  require_flag(checkpoint, "add_cross_attention", false);
  require_flag(checkpoint, "is_encoder_decoder", false);
  config.max_segment = read_encoder_segment(options, config.positions);
  layer.names = {.attention_sum_norm = "attention.output.LayerNorm",
                 .feed_forward_sum_norm = "output.LayerNorm",
                 .q = "attention.self.query",
                 .k = "attention.self.key",
                 .v = "attention.self.value",
                 .attention_out = "attention.output.dense",
                 .up = "intermediate.dense",
                 .down = "output.dense"};
  // How much is computed at a time, and sizes of heads of old that are not there.
  checkpoint.ignore_keys({"chunk_size_feed_forward", "directionality", "gradient_checkpointing",
                          "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
                          "pooler_size_per_head", "pooler_type"});
  ignore_common_keys(checkpoint);
  return config;
}

Encoder::Encoder(const Checkpoint& checkpoint, const EncoderConfig& config, Graph& graph)
    : checkpoint_(checkpoint),
      config_(config),
      graph_(graph),
      builder_(graph),
      parts_(checkpoint, builder_),
      prefix_(optional_prefix(checkpoint, config.base, config.words)),
      layers_(checkpoint, config.layer, builder_, parts_) {
  GraphBuilder::Entry entry;
  entry.name = "encode";
  entry.vocabulary = config.vocabulary;
  entry.max_segment = config.max_segment;
  entry.starts = true;
  builder_.begin_entry(entry);
  if (is_padded()) rows_symbol_ = builder_.symbol("rows", most_rows());
  tokens_ = padded(builder_.tokens(), config.padding.token);
  if (config.has_mask) attention_mask_ = padded(builder_.input("attention_mask", 2, 1), 0);
  // Buffers that only count.
  checkpoint.ignore_tensor(prefix_ + "embeddings.position_ids");
  checkpoint.ignore_tensor(prefix_ + "embeddings.token_type_ids");
}

uint32_t Encoder::most_rows() const {
  const EncoderPadding& padding = config_.padding;
  const uint32_t tokens = config_.max_segment;
  if (tokens <= padding.above) return tokens;
  return (tokens + padding.multiple - 1) / padding.multiple * padding.multiple;
}

uint32_t Encoder::padded(uint32_t ids, uint32_t value) {
  if (!is_padded()) return ids;
  schema::PadRowsOptionsT options;
  options.multiple = config_.padding.multiple;
  options.above = config_.padding.above;
  options.value = static_cast<int32_t>(value);
  return builder_.pad_rows(graph_.tensor(ids).name + ".padded", ids, rows_symbol_, options);
}

uint32_t Encoder::embeddings(uint32_t position_ids) {
  const uint32_t width = config_.embedding_width;
  const std::string prefix = prefix_ + "embeddings.";
  const uint32_t type_ids =
      config_.types == 0 ? 0 : padded(builder_.input("token_type_ids", config_.types, 0), 0);
  uint32_t sum = builder_.embedding(
      "words", tokens_, parts_.matrix(prefix_ + config_.words, config_.vocabulary, width),
      config_.word_scale);
  if (config_.types != 0) {
    const uint32_t table =
        parts_.matrix(prefix + "token_type_embeddings.weight", config_.types, width);
    sum = builder_.add("words.types", sum, builder_.embedding("types", type_ids, table));
  }
  if (position_ids != GraphBuilder::kNone) {
    const uint32_t rows =
        checkpoint_.size("max_position_embeddings", 1, kMaxSize) + config_.unused_positions;
    const uint32_t table = parts_.matrix(prefix + "position_embeddings.weight", rows, width);
    sum = builder_.add("embedded", sum, builder_.embedding("places", position_ids, table));
  }
  return layers_.norm("embeddings", sum, prefix_ + config_.embedding_norm, width);
}

uint32_t Encoder::layers(uint32_t x, const LayerBuilder::Attend& attend) {
  for (uint32_t i = 0; i < config_.layers; ++i) {
    builder_.debug_output(x, "hidden_states." + std::to_string(i));
    x = layers_.build(i, prefix_ + config_.layers_prefix + std::to_string(i) + ".", x, attend);
  }
  x = layers_.norm_if("final_norm", x, prefix_, config_.final_norm);
  builder_.debug_output(x, "hidden_states." + std::to_string(config_.layers));
  return x;
}

GraphBuilder::Attention Encoder::full_attention(uint32_t k, uint32_t v) const {
  GraphBuilder::Attention attention;
  attention.heads = attention.kv_heads = config_.layer.heads.count;
  attention.scale = attention_scale(head_width());
  attention.sources = {{k, v}};
  attention.pattern.kind = schema::PatternKind::Full;
  attention.key_mask = attention_mask_;
  return attention;
}

uint32_t Encoder::attend(const LayerBuilder::Layer& layer,
                         const std::function<void(GraphBuilder::Attention&)>& change) {
  const uint32_t q = layers_.project(layer, LayerBuilder::kQueries, layer.name + ".query");
  const uint32_t v = layers_.project(layer, LayerBuilder::kValues, layer.name + ".value");
  const uint32_t k = layers_.project(layer, LayerBuilder::kKeys, layer.name + ".key");
  GraphBuilder::Attention attention = full_attention(k, v);
  if (change) change(attention);
  return builder_.attention(layer.name + ".attention", q, attention);
}

uint32_t Encoder::pooled(uint32_t x) {
  const uint32_t width = config_.layer.width;
  const uint32_t dense = parts_.linear("pooler.dense", builder_.first_row("pooler.token", x),
                                       prefix_ + config_.pooler, width, width);
  const uint32_t y = builder_.activate("pooler_output", dense, schema::Activation::Tanh);
  builder_.debug_output(y);
  return y;
}

void Encoder::classify(uint32_t x, const std::string& prefix) {
  graph_.model.task = schema::Task::Classify;
  class_logits(x, prefix);
}

void Encoder::classify_tokens(uint32_t x, const std::string& prefix) {
  graph_.model.task = schema::Task::Encode;
  class_logits(builder_.take_rows("tail", x), prefix);
}

bool Encoder::is_of_tokens() const {
  const std::vector<std::string> classes = checkpoint_.texts("architectures");
  const auto has = [&](const std::string& ending) {
    return std::any_of(classes.begin(), classes.end(),
                       [&](const std::string& name) { return name.ends_with(ending); });
  };
  // Without a pooler it can be nothing else; older versions saved one that is not used.
  return has("ForTokenClassification") ||
         (!has("ForSequenceClassification") &&
          !checkpoint_.has_tensor(prefix_ + config_.pooler + ".weight"));
}

void Encoder::class_logits(uint32_t x, const std::string& prefix) {
  const uint32_t classes = stored_rows(checkpoint_, prefix + ".weight");
  const uint32_t bias = parts_.vector(prefix + ".bias", classes);
  builder_.logits(x, parts_.matrix(prefix + ".weight", classes, config_.layer.width), bias);
  graph_.model.metadata->labels = checkpoint_.labels(classes);
}

void Encoder::fill_mask(uint32_t x, const MaskedHead& head, Bias dense_bias, Bias decoder_bias) {
  const uint32_t width = config_.embedding_width, vocabulary = config_.vocabulary;
  graph_.model.task = schema::Task::FillMask;
  const uint32_t dense = layers_.linear("head.dense", builder_.take_rows("tail", x), head.dense,
                                        config_.layer.width, width, dense_bias);
  const uint32_t active = builder_.activate("head.active", dense, head.activation);
  const uint32_t normed = layers_.norm("head.normed", active, head.norm, width);
  const std::string matrix = config_.tied ? prefix_ + config_.words : head.decoder + ".weight";
  const bool own_bias = checkpoint_.has_tensor(head.bias);
  // Other names of the same numbers.
  if (config_.tied) checkpoint_.ignore_tensor(head.decoder + ".weight");
  if (own_bias) checkpoint_.ignore_tensor(head.decoder + ".bias");
  uint32_t bias = GraphBuilder::kNone;
  if (decoder_bias != Bias::kNone) {
    bias = parts_.vector(own_bias ? head.bias : head.decoder + ".bias", vocabulary);
  }
  builder_.logits(normed, parts_.matrix(matrix, vocabulary, width), bias);
}

void Encoder::hidden_states(uint32_t x) {
  graph_.model.task = schema::Task::Encode;
  builder_.output("last_hidden_state", x);
}

void Encoder::leave_out_sentence_head(const std::string& name) {
  if (!checkpoint_.has_tensor(name + ".weight")) return;
  graph_.warnings.push_back(name +
                            ", which tells whether one sentence follows another, is left out");
  checkpoint_.ignore_tensor(name + ".weight");
  checkpoint_.ignore_tensor(name + ".bias");
}

void Encoder::finish(uint32_t x, const MaskedHead& masked, schema::Activation first_token) {
  const uint32_t width = config_.layer.width;
  write_sizes();
  if (is_padded()) x = builder_.token_rows("text", x);
  uint32_t pooler_output = GraphBuilder::kNone;
  if (checkpoint_.has_tensor(prefix_ + config_.pooler + ".weight")) pooler_output = pooled(x);
  builder_.debug_output(x, "last_hidden_state");
  if (checkpoint_.has_tensor("classifier.out_proj.weight")) {
    const uint32_t dense =
        parts_.linear("classifier.dense", builder_.first_row("classifier.token", x),
                      "classifier.dense", width, width);
    classify(builder_.activate("classifier.active", dense, first_token), "classifier.out_proj");
  } else if (checkpoint_.has_tensor("classifier.weight") && is_of_tokens()) {
    classify_tokens(x, "classifier");
  } else if (checkpoint_.has_tensor("classifier.weight")) {
    // There must be a pooler, and if not, this says so.
    classify(pooler_output == GraphBuilder::kNone ? pooled(x) : pooler_output, "classifier");
  } else if (checkpoint_.has_tensor(masked.dense + ".weight")) {
    fill_mask(x, masked);
  } else {
    hidden_states(x);
  }
}

void Encoder::write_sizes() {
  write_metadata(checkpoint_, graph_,
                 {{"hidden_size", config_.layer.width},
                  {"intermediate_size", config_.layer.inner},
                  {"max_segment", config_.max_segment},
                  {"num_attention_heads", config_.layer.heads.count},
                  {"num_hidden_layers", config_.layers},
                  {"vocabulary", config_.vocabulary}});
  read_generation(checkpoint_, config_.vocabulary, graph_);
}

}  // namespace oxbow::convert
