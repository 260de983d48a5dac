// GPT-2 as in Hugging Face transformers: learned positions, norms before each half of a layer, and
// matrices stored the other way round than in nn.Linear, [inputs, outputs].

#include "converter/blocks/decoder.h"

namespace oxbow::convert {

void import_gpt2(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  Decoder decoder;
  CausalShape& shape = decoder.shape;
  TransformerLayer& layer = decoder.layer;
  shape.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  shape.layers = checkpoint.size("n_layer", 1, kMaxLayers);
  shape.length_key = checkpoint.has_key("n_positions") ? "n_positions" : "n_ctx";
  shape.length = checkpoint.size(shape.length_key, 1, kMaxSize);
  shape.position_table = true;
  layer.width = checkpoint.size("n_embd", 1, kMaxSize);
  layer.heads = read_heads(checkpoint, "n_embd", layer.width, "n_head");
  layer.inner = checkpoint.size("n_inner", 1, kMaxSize, 4 * layer.width);
  layer.norm.epsilon = static_cast<float>(checkpoint.number("layer_norm_epsilon", 1e-12, 1, 1e-5));
  layer.activation = read_activation(checkpoint, "activation_function", "gelu_new");
  layer.transposed = true;
  if (!checkpoint.flag("scale_attn_weights", true)) decoder.scale = 1.0f;
  decoder.scale_by_layer = checkpoint.flag("scale_attn_by_inverse_layer_idx", false);
  decoder.tied = checkpoint.flag("tie_word_embeddings", true);
  // The order of float32 operations, an older name of n_positions, and the head of GPT2DoubleHeads.
  checkpoint.ignore_keys({"reorder_and_upcast_attn", "n_ctx", "summary_type", "summary_use_proj",
                          "summary_activation", "summary_first_dropout", "summary_proj_to_labels"});
  ignore_common_keys(checkpoint);

  DecoderNames& names = decoder.names;
  names.prefix = optional_prefix(checkpoint, "transformer.", "wte.weight");
  names.words = "wte";
  names.places = "wpe";
  names.layers = "h.";
  names.final_norm = "ln_f";
  layer.names = {.attention_norm = "ln_1",
                 .feed_forward_norm = "ln_2",
                 .packed = "attn.c_attn",
                 .attention_out = "attn.c_proj",
                 .up = "mlp.c_fc",
                 .down = "mlp.c_proj",
                 // Masks that old checkpoints store.
                 .ignored = {"attn.bias", "attn.masked_bias"}};
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
