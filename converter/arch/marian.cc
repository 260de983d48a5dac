// Marian translation models as Hugging Face transformers has them: post-norm layers, fixed sinusoid
// positions.

#include <cmath>

#include "converter/blocks/translator.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

struct Config {
  uint32_t width, positions;
  float embedding_scale;
  TextStack encoder, decoder;
  /// The tensors with the embeddings, and with the head.
  std::string encoder_table, decoder_table, head;
  TextLengths lengths;
};

TextStack read_stack(const Checkpoint& checkpoint, const std::string& name, uint32_t width) {
  TextStack stack;
  stack.name = name;
  stack.layers = checkpoint.size(name + "_layers", 1, kMaxLayers);
  stack.prefix = "model." + name + ".layers.";
  stack.suffix = ".";
  TransformerLayer& layer = stack.layer;
  layer.graph_prefix = name + ".";
  layer.width = width;
  const uint32_t heads = checkpoint.size(name + "_attention_heads", 1, width);
  layer.inner = checkpoint.size(name + "_ffn_dim", 1, kMaxSize);
  require_multiple(checkpoint, "d_model", width, name + "_attention_heads", heads);
  layer.heads = {heads, heads, width / heads};
  stack.scale = attention_scale(layer.heads.width);
  // torch.nn.LayerNorm's own; the configuration has no key for it.
  layer.norm.epsilon = 1e-5f;
  LayerNames& names = layer.names;
  names.q = "self_attn.q_proj";
  names.k = "self_attn.k_proj";
  names.v = "self_attn.v_proj";
  names.attention_out = "self_attn.out_proj";
  names.attention_sum_norm = "self_attn_layer_norm";
  names.up = "fc1";
  names.down = "fc2";
  names.feed_forward_sum_norm = "final_layer_norm";
  if (name == "encoder") return stack;
  names.cross_q = "encoder_attn.q_proj";
  names.cross_k = "encoder_attn.k_proj";
  names.cross_v = "encoder_attn.v_proj";
  names.cross_out = "encoder_attn.out_proj";
  names.cross_sum_norm = "encoder_attn_layer_norm";
  return stack;
}

void read_embeddings(const Checkpoint& checkpoint, Config& config) {
  const std::string encoder = "model.encoder.embed_tokens.weight";
  const std::string decoder = "model.decoder.embed_tokens.weight";
  config.encoder.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.decoder.vocabulary =
      checkpoint.size("decoder_vocab_size", 1, kMaxSize, config.encoder.vocabulary);
  config.encoder_table = encoder;
  config.decoder_table = decoder;
  if (checkpoint.flag("share_encoder_decoder_embeddings", true)) {
    config.decoder.vocabulary = config.encoder.vocabulary;
    config.encoder_table = config.decoder_table = "model.shared.weight";
    checkpoint.ignore_tensor(encoder);
    checkpoint.ignore_tensor(decoder);
  }
  config.head = "lm_head.weight";
  if (checkpoint.flag("tie_word_embeddings", true)) {
    checkpoint.ignore_tensor(config.head);
    config.head = config.decoder_table;
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
  config.encoder.layer.activation = config.decoder.layer.activation =
      read_activation(checkpoint, "activation_function", "gelu");
  config.lengths =
      read_text_lengths(options, config.positions, config.positions, "max_position_embeddings");
  ignore_common_keys(checkpoint);
  checkpoint.ignore_keys({"is_encoder_decoder", "encoder_layerdrop", "decoder_layerdrop",
                          "num_hidden_layers", "classif_dropout",
                          // Written by old exporters, and read by no version of the model.
                          "static_position_embeddings", "extra_pos_embeddings", "add_bias_logits"});
  return config;
}

/// Fixed, so that many checkpoints leave it out.
uint32_t position_table(const Checkpoint& checkpoint, const Config& config, const TextStack& stack,
                        Translator& translator) {
  const std::string name = "model." + stack.name + ".embed_positions.weight";
  if (checkpoint.has_tensor(name)) {
    return translator.parts().matrix(name, config.positions, config.width);
  }
  require_multiple(checkpoint, "d_model", config.width, "the sinusoids' halves", 2);
  std::vector<double> positions(config.positions), frequencies(config.width / 2);
  for (size_t p = 0; p < positions.size(); ++p) positions[p] = static_cast<double>(p);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = std::pow(10000.0, -2.0 * static_cast<double>(i) / config.width);
  }
  return translator.builder().weight(name, config.positions, config.width,
                                     sinusoids(positions, frequencies));
}

uint32_t embed(const Checkpoint& checkpoint, const Config& config, const TextStack& stack,
               const std::string& table, Translator& translator) {
  GraphBuilder& builder = translator.builder();
  const uint32_t x = builder.embedding(
      stack.name + ".embed", builder.tokens(),
      translator.parts().matrix(table, stack.vocabulary, config.width), config.embedding_scale);
  const uint32_t ids = builder.positions(stack.name + ".positions", config.positions, {});
  const uint32_t places = builder.embedding(stack.name + ".places", ids,
                                            position_table(checkpoint, config, stack, translator));
  return builder.add(stack.name + ".input", x, places);
}

void add_head(const Checkpoint& checkpoint, const Config& config, uint32_t x,
              Translator& translator) {
  GraphBuilder& builder = translator.builder();
  const uint32_t vocabulary = config.decoder.vocabulary;
  const uint32_t bias = builder.weight("final_logits_bias", 1, vocabulary,
                                       checkpoint.matrix("final_logits_bias", 1, vocabulary));
  const uint32_t head = translator.parts().matrix(config.head, vocabulary, config.width);
  builder.logits(builder.take_rows("tail", x), head, bias);
}

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
  const TextStack &encoder = config.encoder, &decoder = config.decoder;
  Translator translator(checkpoint, encoder, decoder, config.lengths, graph);
  translator.begin_encoder();
  translator.encode(embed(checkpoint, config, encoder, config.encoder_table, translator),
                    encoder.heads());
  translator.begin_decoder();
  const uint32_t x = translator.decode(
      embed(checkpoint, config, decoder, config.decoder_table, translator), decoder.heads());
  add_head(checkpoint, config, x, translator);
  graph.model.task = schema::Task::Translate;
  graph.keeps_context = true;
  write_generation(checkpoint, graph);
  write_metadata(checkpoint, graph,
                 {{"d_model", config.width},
                  {"decoder_ffn_dim", decoder.layer.inner},
                  {"decoder_heads", decoder.layer.heads.count},
                  {"decoder_layers", decoder.layers},
                  {"encoder_ffn_dim", encoder.layer.inner},
                  {"encoder_heads", encoder.layer.heads.count},
                  {"encoder_layers", encoder.layers},
                  {"max_source", config.lengths.source},
                  {"max_target", config.lengths.target},
                  {"vocabulary", decoder.vocabulary}});
}

}  // namespace oxbow::convert
