// ELECTRA (Clark et al. 2020) as in Hugging Face's library: BERT with embeddings of a width of their own
// and other heads. The discriminator tells of each token whether it was replaced, the generator predicts
// masked tokens.

#include "converter/blocks/encoder.h"

namespace oxbow::convert {
namespace {

/// One value for each token: above zero, it was replaced.
void discriminate(const EncoderConfig& config, Encoder& encoder, uint32_t x, Graph& graph) {
  const std::string prefix = "discriminator_predictions.";
  const uint32_t width = config.layer.width;
  GraphBuilder& builder = encoder.builder();
  encoder.write_sizes();
  builder.debug_output(x, "last_hidden_state");
  graph.model.task = schema::Task::Encode;
  const uint32_t dense = encoder.parts().linear("head.dense", builder.take_rows("tail", x),
                                                prefix + "dense", width, width);
  const uint32_t active = builder.activate("head.active", dense, config.layer.activation);
  const uint32_t bias = encoder.parts().vector(prefix + "dense_prediction.bias", 1);
  builder.logits(active, encoder.parts().matrix(prefix + "dense_prediction.weight", 1, width),
                 bias);
}

}  // namespace

void import_electra(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  EncoderConfig config = read_bert_config(checkpoint, options);
  config.base = "electra.";
  const uint32_t width = config.layer.width;
  config.embedding_width = checkpoint.size("embedding_size", 1, kMaxSize, 128);
  checkpoint.choice("position_embedding_type", "absolute", {"absolute"});
  // Of heads that are not here.
  checkpoint.ignore_keys(
      {"summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout"});

  Encoder encoder(checkpoint, config, graph);
  const uint32_t positions = encoder.builder().positions("positions", config.positions, {});
  uint32_t x = encoder.embeddings(positions);
  if (config.embedding_width != width) {
    x = encoder.parts().linear("embeddings.projected", x, encoder.prefix() + "embeddings_project",
                               config.embedding_width, width);
  }
  x = encoder.layers(x, [&](const LayerBuilder::Layer& layer) { return encoder.attend(layer); });
  if (checkpoint.has_tensor("discriminator_predictions.dense.weight")) {
    discriminate(config, encoder, x, graph);
    return;
  }
  encoder.finish(x,
                 {.dense = "generator_predictions.dense",
                  .norm = "generator_predictions.LayerNorm",
                  .decoder = "generator_lm_head",
                  .bias = "generator_lm_head.bias",
                  .activation = schema::Activation::Gelu},
                 schema::Activation::Gelu);
}

}  // namespace oxbow::convert
