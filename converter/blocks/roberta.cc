#include "converter/blocks/roberta.h"

namespace oxbow::convert {

uint32_t positions_behind_padding(GraphBuilder& builder, uint32_t pad_token, uint32_t rows) {
  schema::PositionsOptionsT options;
  options.offset = pad_token + 1;
  options.pad_token = static_cast<int32_t>(pad_token);
  options.pad_position = pad_token;
  return builder.positions("positions", rows, options);
}

MaskedHead roberta_masked_head() {
  return {.dense = "lm_head.dense",
          .norm = "lm_head.layer_norm",
          .decoder = "lm_head.decoder",
          .bias = "lm_head.bias"};
}

void import_roberta_model(const Checkpoint& checkpoint, const ImportOptions& options,
                          Graph& graph) {
  const uint32_t pad_token = checkpoint.size("pad_token_id", 0, kMaxSize - 1, 1);
  EncoderConfig config = read_bert_config(checkpoint, options, pad_token + 1);
  config.base = "roberta.";
  checkpoint.choice("position_embedding_type", "absolute", {"absolute"});
  Encoder encoder(checkpoint, config, graph);
  const uint32_t positions =
      positions_behind_padding(encoder.builder(), pad_token, config.positions + pad_token + 1);
  const uint32_t x =
      encoder.layers(encoder.embeddings(positions),
                     [&](const LayerBuilder::Layer& layer) { return encoder.attend(layer); });
  encoder.finish(x, roberta_masked_head(), schema::Activation::Tanh);
}

}  // namespace oxbow::convert
