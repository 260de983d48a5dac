// DistilBERT (Sanh et al. 2019) as in Hugging Face's library: BERT's layers under other names, without
// kinds of tokens and without a pooler.

#include "converter/blocks/encoder.h"

namespace oxbow::convert {
namespace {

// The configuration has no key for it.
constexpr float kEpsilon = 1e-12f;

EncoderConfig read(const Checkpoint& checkpoint, const ImportOptions& options) {
  EncoderConfig config;
  TransformerLayer& layer = config.layer;
  config.base = "distilbert.";
  config.layers_prefix = "transformer.layer.";
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.positions = checkpoint.size("max_position_embeddings", 1, kMaxSize);
  config.max_segment = read_encoder_segment(options, config.positions);
  config.layers = checkpoint.size("n_layers", 1, kMaxLayers);
  layer.width = config.embedding_width = checkpoint.size("dim", 1, kMaxSize);
  layer.heads = read_heads(checkpoint, "dim", layer.width, "n_heads");
  layer.inner = checkpoint.size("hidden_dim", 1, kMaxSize);
  layer.norm.epsilon = kEpsilon;
  layer.activation = read_activation(checkpoint, "activation", "gelu");
  config.tied = checkpoint.flag("tie_word_embeddings", true);
  layer.names = {.attention_sum_norm = "sa_layer_norm",
                 .feed_forward_sum_norm = "output_layer_norm",
                 .q = "attention.q_lin",
                 .k = "attention.k_lin",
                 .v = "attention.v_lin",
                 .attention_out = "attention.out_lin",
                 .up = "ffn.lin1",
                 .down = "ffn.lin2"};
  require_flag(checkpoint, "is_decoder", false);
  // How the stored table of positions was made, training, and names that older versions wrote too.
  checkpoint.ignore_keys({"sinusoidal_pos_embds", "qa_dropout", "seq_classif_dropout",
                          "tie_weights_", "is_encoder_decoder"});
  ignore_common_keys(checkpoint);
  return config;
}

}  // namespace

void import_distilbert(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const EncoderConfig config = read(checkpoint, options);
  Encoder encoder(checkpoint, config, graph);
  GraphBuilder& builder = encoder.builder();
  const uint32_t positions = builder.positions("positions", config.positions, {});
  const uint32_t x =
      encoder.layers(encoder.embeddings(positions),
                     [&](const LayerBuilder::Layer& layer) { return encoder.attend(layer); });
  if (!checkpoint.has_tensor("pre_classifier.weight")) {
    encoder.finish(x,
                   {.dense = "vocab_transform",
                    .norm = "vocab_layer_norm",
                    .decoder = "vocab_projector",
                    .bias = "vocab_projector.bias",
                    .activation = config.layer.activation},
                   schema::Activation::Relu);
    return;
  }
  encoder.write_sizes();
  builder.debug_output(x, "last_hidden_state");
  const uint32_t width = config.layer.width;
  const uint32_t dense = encoder.parts().linear(
      "classifier.dense", builder.first_row("classifier.token", x), "pre_classifier", width, width);
  encoder.classify(builder.activate("classifier.active", dense, schema::Activation::Relu),
                   "classifier");
}

}  // namespace oxbow::convert
