#include "converter/blocks/patterned_decoder.h"

#include <algorithm>

#include "host/errors.h"

namespace oxbow::convert {

Decoder read_patterned_decoder(const Checkpoint& checkpoint, uint32_t length,
                               const std::string& length_key) {
  Decoder decoder;
  CausalShape& shape = decoder.shape;
  TransformerLayer& layer = decoder.layer;
  shape.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  shape.layers = checkpoint.size("n_layer", 1, kMaxLayers);
  shape.length = length;
  shape.length_key = length_key;
  shape.position_table = true;
  layer.width = checkpoint.size("n_embd", 1, kMaxSize);
  layer.heads = read_heads(checkpoint, "n_embd", layer.width, "n_head");
  layer.inner = checkpoint.size("n_inner", 1, kMaxSize, 4 * layer.width);
  layer.norm.epsilon = static_cast<float>(checkpoint.number("layer_norm_epsilon", 1e-12, 1, 1e-5));
  layer.names = {.q = "q", .k = "k", .v = "v", .attention_out = "out", .up = "up", .down = "down"};
  decoder.names.words = "words";
  decoder.names.places = "positions";
  decoder.names.head = "head";
  decoder.tied = false;
  decoder.head_bias = true;
  ignore_common_keys(checkpoint);
  return decoder;
}

std::vector<std::string> read_layer_patterns(const Checkpoint& checkpoint, uint32_t layers,
                                             const std::vector<std::string>& known) {
  const std::vector<std::string> given = checkpoint.texts("attention");
  if (given.empty()) {
    checkpoint.refuse("attention is missing, expected a list of patterns");
    return std::vector<std::string>(layers, known.front());
  }
  std::string names;
  for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
  std::vector<std::string> patterns;
  for (uint32_t i = 0; i < layers; ++i) {
    patterns.push_back(given[i % given.size()]);
    if (std::find(known.begin(), known.end(), patterns.back()) == known.end()) {
      checkpoint.refuse("attention has " + printable(patterns.back(), 40) + ", expected " + names);
    }
  }
  return patterns;
}

}  // namespace oxbow::convert
