// Marian translation models as Hugging Face transformers has them: post-norm layers, fixed sinusoid
// positions.

#include <cmath>

#include "converter/blocks/encoder_decoder.h"
#include "converter/blocks/parts.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

// torch.nn.LayerNorm's own; the configuration has no key for it.
constexpr float kEpsilon = 1e-5f;

/// Encoder or decoder.
struct Stack {
  std::string name;
  uint32_t layers, heads, inner, vocabulary;
  /// The tensor with the embeddings.
  std::string table;
};

struct Config {
  uint32_t width, positions;
  float embedding_scale;
  schema::Activation activation;
  Stack encoder, decoder;
  std::string head;
  TextLengths lengths;
};

Stack read_stack(const Checkpoint& checkpoint, const std::string& name, uint32_t width) {
  Stack stack;
  stack.name = name;
  stack.layers = checkpoint.size(name + "_layers", 1, kMaxLayers);
  stack.heads = checkpoint.size(name + "_attention_heads", 1, width);
  stack.inner = checkpoint.size(name + "_ffn_dim", 1, kMaxSize);
  require_multiple("d_model", width, name + "_attention_heads", stack.heads);
  return stack;
}

void read_embeddings(const Checkpoint& checkpoint, Config& config) {
  const std::string encoder = "model.encoder.embed_tokens.weight";
  const std::string decoder = "model.decoder.embed_tokens.weight";
  config.encoder.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.decoder.vocabulary =
      checkpoint.size("decoder_vocab_size", 1, kMaxSize, config.encoder.vocabulary);
  config.encoder.table = encoder;
  config.decoder.table = decoder;
  if (checkpoint.flag("share_encoder_decoder_embeddings", true)) {
    config.decoder.vocabulary = config.encoder.vocabulary;
    config.encoder.table = config.decoder.table = "model.shared.weight";
    checkpoint.ignore_tensor(encoder);
    checkpoint.ignore_tensor(decoder);
  }
  config.head = "lm_head.weight";
  if (checkpoint.flag("tie_word_embeddings", true)) {
    checkpoint.ignore_tensor(config.head);
    config.head = config.decoder.table;
  }
}

Config read_config(const Checkpoint& checkpoint, const ImportOptions& options) {
  Config config;
  config.width = checkpoint.size("d_model", 1, kMaxSize);
  config.encoder = read_stack(checkpoint, "encoder", config.width);
  config.decoder = read_stack(checkpoint, "decoder", config.width);
  read_embeddings(checkpoint, config);
  config.positions = checkpoint.size("max_position_embeddings", 1, kMaxSize);
  config.embedding_scale = checkpoint.flag("scale_embedding", false)
                               ? std::sqrt(static_cast<float>(config.width))
                               : 1.0f;
  config.activation = read_activation(checkpoint, "activation_function", "gelu");
  config.lengths =
      read_text_lengths(options, config.positions, config.positions, "max_position_embeddings");
  ignore_common_keys(checkpoint);
  checkpoint.ignore_keys({"is_encoder_decoder", "encoder_layerdrop", "decoder_layerdrop",
                          "num_hidden_layers", "classif_dropout",
                          // Written by old exporters, and read by no version of the model.
                          "static_position_embeddings", "extra_pos_embeddings", "add_bias_logits"});
  return config;
}

class Model {
 public:
  Model(const Checkpoint& checkpoint, const Config& config, Graph& graph)
      : checkpoint_(checkpoint), config_(config), builder_(graph), parts_(checkpoint, builder_) {}

  void encode() {
    GraphBuilder::Entry entry;
    entry.name = "encode";
    entry.vocabulary = config_.encoder.vocabulary;
    entry.max_segment = config_.lengths.source;
    entry.starts = true;
    builder_.begin_entry(entry);
    const uint32_t mask = builder_.input("attention_mask", 2, 1);
    uint32_t x = embed(config_.encoder);
    for (uint32_t i = 0; i < config_.encoder.layers; ++i) {
      const std::string name = "encoder.layer" + std::to_string(i);
      const std::string prefix = "model.encoder.layers." + std::to_string(i) + ".";
      const HeadShape shape = head_shape(config_.encoder);
      const std::string attention = prefix + "self_attn.";
      const uint32_t q = project(name + ".q", x, attention + "q_proj");
      const uint32_t attended =
          attend_to_all(builder_, name + ".attended", q, keys(name, x, attention), shape, mask);
      x = add_and_norm(name + ".self", x, attended, attention + "out_proj",
                       prefix + "self_attn_layer_norm");
      x = feed_forward(name, prefix, x, config_.encoder.inner);
    }
    keep(x, mask);
    builder_.output("encoder_last_hidden_state", x);
  }

  void decode() {
    GraphBuilder::Entry entry;
    entry.tokens = "decoder_input_ids";
    entry.vocabulary = config_.decoder.vocabulary;
    entry.max_segment = config_.lengths.segment;
    entry.capacity = config_.lengths.target;
    entry.any_pieces = true;
    builder_.begin_entry(entry);
    const HeadShape shape = head_shape(config_.decoder);
    uint32_t x = embed(config_.decoder);
    for (uint32_t i = 0; i < config_.decoder.layers; ++i) {
      const std::string name = "decoder.layer" + std::to_string(i);
      const std::string prefix = "model.decoder.layers." + std::to_string(i) + ".";
      const std::string attention = prefix + "self_attn.";
      const uint32_t q = project(name + ".q", x, attention + "q_proj");
      const uint32_t past = attend_to_past(builder_, name + ".self", q, keys(name, x, attention),
                                           shape, config_.lengths.target);
      x = add_and_norm(name + ".self", x, past, attention + "out_proj",
                       prefix + "self_attn_layer_norm");
      const std::string cross = prefix + "encoder_attn.";
      const uint32_t kept =
          attend_to_kept(builder_, name + ".cross.attended",
                         project(name + ".cross.q", x, cross + "q_proj"), kept_.at(i), shape);
      x = add_and_norm(name + ".cross", x, kept, cross + "out_proj",
                       prefix + "encoder_attn_layer_norm");
      x = feed_forward(name, prefix, x, config_.decoder.inner);
    }
    const uint32_t vocabulary = config_.decoder.vocabulary;
    const uint32_t bias = builder_.weight("final_logits_bias", 1, vocabulary,
                                          checkpoint_.matrix("final_logits_bias", 1, vocabulary));
    builder_.logits(builder_.take_rows("tail", x),
                    parts_.matrix(config_.head, vocabulary, config_.width), bias);
  }

 private:
  HeadShape head_shape(const Stack& stack) const {
    HeadShape shape;
    shape.heads = stack.heads;
    shape.width = config_.width;
    shape.scale = static_cast<float>(1.0 / std::sqrt(double(config_.width / stack.heads)));
    return shape;
  }

  uint32_t project(const std::string& name, uint32_t x, const std::string& prefix) {
    return parts_.linear(name, x, prefix, config_.width, config_.width);
  }
  GraphBuilder::Source keys(const std::string& name, uint32_t x, const std::string& prefix) {
    return {project(name + ".k", x, prefix + "k_proj"), project(name + ".v", x, prefix + "v_proj")};
  }

  /// What the decoder will look at: rows that are no padding, through each layer's projections.
  void keep(uint32_t x, uint32_t mask) {
    const uint32_t symbol = builder_.symbol("source_rows", config_.lengths.source);
    const uint32_t rows = builder_.select_rows("encoder.rows", x, mask, symbol);
    for (uint32_t i = 0; i < config_.decoder.layers; ++i) {
      const std::string name = "decoder.layer" + std::to_string(i) + ".cross";
      const std::string prefix = "model.decoder.layers." + std::to_string(i) + ".encoder_attn.";
      kept_.push_back(keep_for_decoder(builder_, name, keys(name, rows, prefix), config_.width,
                                       config_.lengths.source));
    }
  }

  uint32_t embed(const Stack& stack) {
    const uint32_t table = parts_.matrix(stack.table, stack.vocabulary, config_.width);
    const uint32_t x = builder_.embedding(stack.name + ".embed", builder_.tokens(), table,
                                          config_.embedding_scale);
    const uint32_t ids = builder_.positions(stack.name + ".positions", config_.positions, {});
    const uint32_t places =
        builder_.embedding(stack.name + ".places", ids, position_table(stack.name));
    return builder_.add(stack.name + ".input", x, places);
  }

  /// Fixed, so that many checkpoints leave it out.
  uint32_t position_table(const std::string& stack) {
    const std::string name = "model." + stack + ".embed_positions.weight";
    if (checkpoint_.has_tensor(name)) {
      return parts_.matrix(name, config_.positions, config_.width);
    }
    require_multiple("d_model", config_.width, "the sinusoids' halves", 2);
    std::vector<double> positions(config_.positions), frequencies(config_.width / 2);
    for (size_t p = 0; p < positions.size(); ++p) positions[p] = static_cast<double>(p);
    for (size_t i = 0; i < frequencies.size(); ++i) {
      frequencies[i] = std::pow(10000.0, -2.0 * static_cast<double>(i) / config_.width);
    }
    return builder_.weight(name, config_.positions, config_.width,
                           sinusoids(positions, frequencies));
  }

  uint32_t add_and_norm(const std::string& name, uint32_t x, uint32_t y, const std::string& out,
                        const std::string& norm) {
    const uint32_t sum = builder_.add(name + ".sum", x, project(name + ".out", y, out));
    return parts_.layer_norm(name + ".normed", sum, norm, config_.width, kEpsilon);
  }

  uint32_t feed_forward(const std::string& name, const std::string& prefix, uint32_t x,
                        uint32_t inner) {
    const uint32_t wide = parts_.linear(name + ".wide", x, prefix + "fc1", config_.width, inner);
    const uint32_t active = builder_.activate(name + ".active", wide, config_.activation);
    const uint32_t narrow =
        parts_.linear(name + ".narrow", active, prefix + "fc2", inner, config_.width);
    return parts_.layer_norm(name + ".out", builder_.add(name + ".sum", x, narrow),
                             prefix + "final_layer_norm", config_.width, kEpsilon);
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  GraphBuilder builder_;
  Parts parts_;
  /// Keys and values of the encoder's output, for each layer of the decoder.
  std::vector<GraphBuilder::Source> kept_;
};

/// Where the configuration is silent, what the original's own defaults do: the text ends with its end
/// token even when it is cut, and is never padded from within.
void write_generation(const Checkpoint& checkpoint, Graph& graph) {
  graph.model.generation = read_generation(checkpoint, graph);
  schema::GenerationT& generation = *graph.model.generation;
  generation.forced_last_token = checkpoint.token("forced_eos_token_id", generation.end_token);
  if (!checkpoint.has_key("bad_words_ids") && generation.pad_token >= 0) {
    generation.forbidden_tokens = {generation.pad_token};
  }
}

}  // namespace

void import_marian(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Config config = read_config(checkpoint, options);
  Model model(checkpoint, config, graph);
  model.encode();
  model.decode();
  graph.model.task = schema::Task::Translate;
  graph.keeps_context = true;
  write_generation(checkpoint, graph);
  write_metadata(checkpoint, graph,
                 {{"d_model", config.width},
                  {"decoder_ffn_dim", config.decoder.inner},
                  {"decoder_heads", config.decoder.heads},
                  {"decoder_layers", config.decoder.layers},
                  {"encoder_ffn_dim", config.encoder.inner},
                  {"encoder_heads", config.encoder.heads},
                  {"encoder_layers", config.encoder.layers},
                  {"max_source", config.lengths.source},
                  {"max_target", config.lengths.target},
                  {"vocabulary", config.decoder.vocabulary}});
}

}  // namespace oxbow::convert
