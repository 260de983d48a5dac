// RoFormer (Su et al. 2021) as in Hugging Face's library: BERT whose queries and keys, and values if
// rotary_value, are turned by their positions, two neighbouring elements at a time.

#include "converter/post_norm_encoder.h"

namespace oxbow::convert {
namespace {

/// Sines and cosines of every position, a row each: stored with the model, though always the same.
uint32_t read_angles(const PostNormConfig& config, PostNormEncoder& encoder) {
  const std::string name = encoder.prefix() + "encoder.embed_positions.weight";
  const uint32_t width = encoder.head_width();
  const uint32_t table = encoder.parts().matrix(name, config.positions, width);
  const uint32_t positions = encoder.builder().positions("positions", config.positions, {});
  return encoder.builder().embedding("angles", positions, table);
}

}  // namespace

void import_roformer(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  PostNormConfig config = read_post_norm_config(checkpoint, options);
  config.embedding_width = checkpoint.size("embedding_size", 1, kMaxSize, config.width);
  const bool turn_values = checkpoint.flag("rotary_value", false);
  require_multiple("hidden_size / num_attention_heads", config.width / config.heads, "two", 2);

  PostNormEncoder encoder(checkpoint, config, "roformer.", graph);
  GraphBuilder& builder = encoder.builder();
  uint32_t x = encoder.embeddings(GraphBuilder::kNone);
  if (config.embedding_width != config.width) {
    x = encoder.parts().linear("embeddings.projected", x, encoder.prefix() + "embeddings_project",
                               config.embedding_width, config.width);
  }
  const uint32_t angles = read_angles(config, encoder);
  x = encoder.layers(x, [&](const PostNormEncoder::Layer& layer) {
    const auto turned = [&](const std::string& which, bool turn = true) {
      const uint32_t rows = encoder.project(layer, which);
      if (!turn) return rows;
      return builder.rope(layer.name + "." + which + ".turned", rows, angles, config.heads, true);
    };
    const uint32_t q = turned("query");
    const uint32_t k = turned("key");
    const uint32_t v = turned("value", turn_values);
    return builder.attention(layer.name + ".attention", q, encoder.full_attention(k, v));
  });
  MaskedHead head;
  head.activation = config.activation;
  encoder.finish(x, head, config.activation);
}

}  // namespace oxbow::convert
