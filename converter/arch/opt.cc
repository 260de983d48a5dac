// OPT and Galactica: learned positions behind two unused rows, norms before or behind each half of a
// layer, and, in one size, embeddings that are narrower than the layers.

#include "converter/blocks/decoder.h"

namespace oxbow::convert {
namespace {

// The configuration has no key for either.
constexpr uint32_t kUnusedPositions = 2;
constexpr float kEpsilon = 1e-5f;

}  // namespace

void import_opt(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  Decoder decoder;
  CausalShape& shape = decoder.shape;
  TransformerLayer& layer = decoder.layer;
  shape.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  shape.layers = checkpoint.size("num_hidden_layers", 1, kMaxLayers);
  shape.length_key = "max_position_embeddings";
  shape.length = checkpoint.size(shape.length_key, 1, kMaxSize);
  shape.position_table = true;
  shape.unused_positions = kUnusedPositions;
  layer.width = checkpoint.size("hidden_size", 1, kMaxSize);
  layer.heads = read_heads(checkpoint, "hidden_size", layer.width, "num_attention_heads");
  layer.inner = checkpoint.size("ffn_dim", 1, kMaxSize);
  layer.activation = read_activation(checkpoint, "activation_function", "relu");
  layer.norm.epsilon = kEpsilon;
  layer.norm.affine = checkpoint.flag("layer_norm_elementwise_affine", true);
  if (!checkpoint.flag("enable_bias", true)) {
    layer.qkv_bias = layer.out_bias = layer.up_bias = layer.down_bias = Bias::kNone;
  }
  decoder.tied = checkpoint.flag("tie_word_embeddings", true);
  decoder.embedding_width = checkpoint.size("word_embed_proj_dim", 1, kMaxSize, layer.width);
  const bool norms_first = checkpoint.flag("do_layer_norm_before", true);
  const bool no_final_norm = checkpoint.flag("_remove_final_layer_norm", false);
  ignore_common_keys(checkpoint);

  DecoderNames& names = decoder.names;
  names.prefix = "model.decoder.";
  if (!checkpoint.has_tensor(names.prefix + "embed_tokens.weight")) names.prefix = "decoder.";
  names.places = "embed_positions";
  names.final_norm = norms_first && !no_final_norm ? "final_layer_norm" : "";
  if (decoder.embedding_width != layer.width) {
    names.projection_in = "project_in";
    names.projection_out = "project_out";
  }
  layer.names = {.q = "self_attn.q_proj",
                 .k = "self_attn.k_proj",
                 .v = "self_attn.v_proj",
                 .attention_out = "self_attn.out_proj",
                 .up = "fc1",
                 .down = "fc2"};
  const std::string first = "self_attn_layer_norm", second = "final_layer_norm";
  (norms_first ? layer.names.attention_norm : layer.names.attention_sum_norm) = first;
  (norms_first ? layer.names.feed_forward_norm : layer.names.feed_forward_sum_norm) = second;
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
