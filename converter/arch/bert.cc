// BERT (Devlin et al. 2018) as in Hugging Face's library: with a classifier on its pooler, with the head
// that predicts masked tokens, or without either. Positions are embedded, or, of two kinds, distances
// are scored (position_embedding_type).

#include "converter/blocks/encoder.h"

namespace oxbow::convert {
namespace {

/// relative_key: a query's product with a row for each distance is added to its scores, and the key's
/// product too if relative_key_query. The rows are the same for all heads, and the middle one belongs
/// to the token itself.
void add_distances(const Checkpoint& checkpoint, const EncoderConfig& config, Encoder& encoder,
                   const LayerBuilder::Layer& layer, GraphBuilder::Attention& attention) {
  const std::string name = layer.prefix + "attention.self.distance_embedding.weight";
  const uint32_t head_width = encoder.head_width(), farthest = config.max_segment - 1;
  const uint32_t heads = config.layer.heads.count, width = config.layer.width;
  const std::vector<float> stored =
      checkpoint.matrix(name, 2 * uint64_t{config.positions} - 1, head_width);
  const uint32_t rows = 2 * farthest + 1;
  const std::vector<float> table =
      rows_of(stored, head_width, config.positions - 1 - farthest, rows);
  GraphBuilder& builder = encoder.builder();
  attention.relative_zero = farthest;
  attention.relative = {
      builder.weight(name, rows, width, repeated_columns(table, head_width, heads)),
      builder.weight(layer.name + ".no_bias", rows, heads,
                     std::vector<float>(size_t{rows} * heads)),
      builder.weight(layer.name + ".no_query_bias", 1, width, std::vector<float>(width))};
}

}  // namespace

void import_bert(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  EncoderConfig config = read_bert_config(checkpoint, options);
  config.base = "bert.";
  const std::string kind = checkpoint.choice("position_embedding_type", "absolute",
                                             {"absolute", "relative_key", "relative_key_query"});
  const bool relative = kind != "absolute";
  Encoder encoder(checkpoint, config, graph);
  uint32_t positions = GraphBuilder::kNone;
  if (relative) {
    // Made for every model, used by those with absolute positions.
    checkpoint.ignore_tensor(encoder.prefix() + "embeddings.position_embeddings.weight");
  } else {
    positions = encoder.builder().positions("positions", config.positions, {});
  }
  const uint32_t x =
      encoder.layers(encoder.embeddings(positions), [&](const LayerBuilder::Layer& layer) {
        return encoder.attend(layer, [&](GraphBuilder::Attention& attention) {
          if (relative) add_distances(checkpoint, config, encoder, layer, attention);
          attention.relative_keys = kind == "relative_key_query";
        });
      });
  MaskedHead head;
  head.activation = config.layer.activation;
  encoder.finish(x, head, schema::Activation::Tanh);
  ignore_next_sentence(checkpoint, graph);
}

}  // namespace oxbow::convert
