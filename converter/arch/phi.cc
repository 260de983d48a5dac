// Phi-1 to Phi-2: both halves of a layer read its one norm, a part of each head is turned, and
// everything has a bias, the head too.

#include "converter/blocks/decoder_config.h"

namespace oxbow::convert {

void import_phi(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  Decoder decoder = read_decoder(checkpoint);
  TransformerLayer& layer = decoder.layer;
  set_rope(
      decoder.shape,
      read_rope(checkpoint, options, decoder.shape, layer.heads.width,
                {.part = "partial_rotary_factor", .default_part = 0.5, .for_long_texts = true}));
  layer.norm.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-20, 1, 1e-5));
  layer.activation = read_activation(checkpoint, "hidden_act", "gelu_new");
  layer.parallel = true;
  decoder.tied = checkpoint.flag("tie_word_embeddings", false);
  decoder.head_bias = true;
  decoder.names.prefix = optional_prefix(checkpoint, "model.", "embed_tokens.weight");
  decoder.names.final_norm = "final_layernorm";
  layer.names = {.attention_norm = "input_layernorm",
                 .q = "self_attn.q_proj",
                 .k = "self_attn.k_proj",
                 .v = "self_attn.v_proj",
                 .attention_out = "self_attn.dense",
                 .up = "mlp.fc1",
                 .down = "mlp.fc2",
                 // Recomputed from the configuration.
                 .ignored = {"self_attn.rotary_emb.inv_freq"}};
  if (checkpoint.flag("qk_layernorm", false)) {
    layer.names.q_norm = "self_attn.q_layernorm";
    layer.names.k_norm = "self_attn.k_layernorm";
  }
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
