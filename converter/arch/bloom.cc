// BLOOM as in Hugging Face transformers: ALiBi, a norm behind the embeddings, and projections of
// queries, keys and values packed head by head.

#include "converter/blocks/decoder.h"

namespace oxbow::convert {

void import_bloom(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  // Each size has had two names.
  const auto key = [&](const char* name, const char* other) {
    return checkpoint.has_key(other) && !checkpoint.has_key(name) ? other : name;
  };
  Decoder decoder;
  CausalShape& shape = decoder.shape;
  TransformerLayer& layer = decoder.layer;
  shape.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  shape.layers = checkpoint.size(key("n_layer", "num_hidden_layers"), 1, kMaxLayers);
  layer.width = checkpoint.size(key("hidden_size", "n_embed"), 1, kMaxSize / 4);
  layer.inner = 4 * layer.width;
  decoder.fixed_inner = true;
  layer.heads =
      read_heads(checkpoint, "hidden_size", layer.width, key("n_head", "num_attention_heads"));
  // Any length will do with ALiBi; this is the one of training, in some configurations.
  if (checkpoint.has_key("seq_length")) {
    shape.length_key = "seq_length";
    shape.length = checkpoint.size("seq_length", 1, kMaxSize, kDefaultContext);
  }
  shape.slopes = alibi_slopes(layer.heads.count);
  layer.norm.epsilon = static_cast<float>(checkpoint.number("layer_norm_epsilon", 1e-12, 1, 1e-5));
  layer.activation = schema::Activation::GeluTanh;
  layer.packing = Packing::kByHead;
  layer.residual_after_norm = checkpoint.flag("apply_residual_connection_post_layernorm", false);
  decoder.tied = checkpoint.flag("tie_word_embeddings", true);
  // How the sums of half precision were split over machines, and how training was.
  checkpoint.ignore_keys({"pretraining_tp", "slow_but_exact", "n_inner", "offset_alibi",
                          "skip_bias_add", "skip_bias_add_qkv", "bias_dropout_fusion",
                          "masked_softmax_fusion", "attention_softmax_in_fp32", "unk_token_id"});
  ignore_common_keys(checkpoint);

  DecoderNames& names = decoder.names;
  names.prefix = optional_prefix(checkpoint, "transformer.", "word_embeddings.weight");
  names.words = "word_embeddings";
  names.embedding_norm = "word_embeddings_layernorm";
  names.layers = "h.";
  names.final_norm = "ln_f";
  layer.names = {.attention_norm = "input_layernorm",
                 .feed_forward_norm = "post_attention_layernorm",
                 .packed = "self_attention.query_key_value",
                 .attention_out = "self_attention.dense",
                 .up = "mlp.dense_h_to_4h",
                 .down = "mlp.dense_4h_to_h"};
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
