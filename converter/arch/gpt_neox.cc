// GPT-NeoX and Pythia: both halves of a layer read its input, a part of each head is turned, and queries,
// keys and values are packed head by head.

#include "converter/blocks/decoder_config.h"

namespace oxbow::convert {

void import_gpt_neox(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  Decoder decoder = read_decoder(checkpoint);
  TransformerLayer& layer = decoder.layer;
  set_rope(decoder.shape, read_rope(checkpoint, options, decoder.shape, layer.heads.width,
                                    {.theta = "rotary_emb_base",
                                     .part = "rotary_pct",
                                     .default_part = 0.25,
                                     .for_long_texts = true}));
  layer.norm.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-20, 1, 1e-5));
  layer.activation = read_activation(checkpoint, "hidden_act", "gelu");
  layer.parallel = checkpoint.flag("use_parallel_residual", true);
  layer.packing = Packing::kByHead;
  if (!checkpoint.flag("attention_bias", true)) layer.qkv_bias = layer.out_bias = Bias::kNone;
  decoder.tied = checkpoint.flag("tie_word_embeddings", false);
  checkpoint.ignore_keys({"is_decoder"});

  DecoderNames& names = decoder.names;
  names.prefix = optional_prefix(checkpoint, "gpt_neox.", "embed_in.weight");
  names.words = "embed_in";
  names.final_norm = "final_layer_norm";
  // Its name in newer versions of the library, while a model is in memory.
  names.head = checkpoint.has_tensor("lm_head.weight") ? "lm_head" : "embed_out";
  layer.names = {
      .attention_norm = "input_layernorm",
      .feed_forward_norm = "post_attention_layernorm",
      .packed = "attention.query_key_value",
      .attention_out = "attention.dense",
      .up = "mlp.dense_h_to_4h",
      .down = "mlp.dense_4h_to_h",
      // Masks and frequencies that old checkpoints store.
      .ignored = {"attention.bias", "attention.masked_bias", "attention.rotary_emb.inv_freq"}};
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
