// RoFormer (Su et al. 2021) as in Hugging Face's library: BERT whose queries and keys, and values if
// rotary_value, are turned by their positions, two neighbouring elements at a time.

#include "converter/blocks/encoder.h"

namespace oxbow::convert {
namespace {

/// Sines and cosines of every position, a row each: stored with the model, though always the same.
uint32_t read_angles(const EncoderConfig& config, Encoder& encoder) {
  const std::string name = encoder.prefix() + "encoder.embed_positions.weight";
  const uint32_t width = encoder.head_width();
  const uint32_t table = encoder.parts().matrix(name, config.positions, width);
  const uint32_t positions = encoder.builder().positions("positions", config.positions, {});
  return encoder.builder().embedding("angles", positions, table);
}

}  // namespace

void import_roformer(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  EncoderConfig config = read_bert_config(checkpoint, options);
  const uint32_t width = config.layer.width;
  config.base = "roformer.";
  config.embedding_width = checkpoint.size("embedding_size", 1, kMaxSize, width);
  const bool turn_values = checkpoint.flag("rotary_value", false);
  require_multiple(checkpoint, "hidden_size / num_attention_heads", config.layer.heads.width, "two",
                   2);

  Encoder encoder(checkpoint, config, graph);
  GraphBuilder& builder = encoder.builder();
  uint32_t x = encoder.embeddings(GraphBuilder::kNone);
  if (config.embedding_width != width) {
    x = encoder.parts().linear("embeddings.projected", x, encoder.prefix() + "embeddings_project",
                               config.embedding_width, width);
  }
  const uint32_t angles = read_angles(config, encoder);
  x = encoder.layers(x, [&](const LayerBuilder::Layer& layer) {
    const auto turned = [&](LayerBuilder::Part part, const std::string& which, bool turn = true) {
      const std::string name = layer.name + "." + which;
      const uint32_t rows = encoder.layer_builder().project(layer, part, name);
      if (!turn) return rows;
      return builder.rope(name + ".turned", rows, angles, config.layer.heads.count, true);
    };
    const uint32_t q = turned(LayerBuilder::kQueries, "query");
    const uint32_t k = turned(LayerBuilder::kKeys, "key");
    const uint32_t v = turned(LayerBuilder::kValues, "value", turn_values);
    return builder.attention(layer.name + ".attention", q, encoder.full_attention(k, v));
  });
  MaskedHead head;
  head.activation = config.layer.activation;
  encoder.finish(x, head, config.layer.activation);
}

}  // namespace oxbow::convert
