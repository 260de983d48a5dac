// Gemma 3 without its pictures: norms on both sides of each half of a layer, norms over the heads of
// queries and keys, scaled embeddings, and windows with rotary positions of their own in most layers.

#include <cmath>

#include "converter/blocks/decoder_config.h"
#include "converter/blocks/rope.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// Layers see a window but for each `sliding_window_pattern`-th, unless layer_types says otherwise.
void read_windows(const Checkpoint& checkpoint, CausalShape& shape) {
  const uint32_t pattern = checkpoint.size("sliding_window_pattern", 1, kMaxSize, 6);
  std::vector<bool> sees_all(shape.layers);
  for (uint32_t i = 0; i < shape.layers; ++i) sees_all[i] = (i + 1) % pattern == 0;
  set_windows(shape, checkpoint.size("sliding_window", 1, kMaxSize, 4096),
              read_layer_types(checkpoint, sees_all));
}

void read_ropes(const Checkpoint& checkpoint, const ImportOptions& options, Decoder& decoder) {
  CausalShape& shape = decoder.shape;
  const uint32_t width = decoder.layer.heads.width;
  const bool nested = checkpoint.has_key("rope_parameters");
  RopeKeys global = {.default_theta = 1e6, .for_long_texts = true};
  if (nested) global.object = "rope_parameters.full_attention";
  Rope all = read_rope(checkpoint, options, shape, width, global);
  std::vector<float> window;
  if (nested) {
    window = read_rope(checkpoint, options, shape, width,
                       {.object = "rope_parameters.sliding_attention"})
                 .frequencies;
  } else {
    // These are never scaled.
    window = rope_frequencies(checkpoint.number("rope_local_base_freq", 1, 1e12, 1e4), width);
  }
  if (shape.window != 0 && shape.sees_all.empty()) {
    shape.frequencies = std::move(window);
    return;
  }
  set_rope(shape, std::move(all));
  if (shape.window != 0) shape.window_frequencies = std::move(window);
}

}  // namespace

void import_gemma3_text(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  Decoder decoder = read_decoder(checkpoint, 256);
  TransformerLayer& layer = decoder.layer;
  read_windows(checkpoint, decoder.shape);
  read_ropes(checkpoint, options, decoder);
  // Scores pass tanh in other models of the family.
  if (checkpoint.has_value("attn_logit_softcapping")) {
    checkpoint.refuse("attn_logit_softcapping is not supported, expected null");
  }
  if (checkpoint.has_value("final_logit_softcapping")) {
    decoder.logit_cap =
        static_cast<float>(checkpoint.number("final_logit_softcapping", 1e-3, 1e6, 0));
  }
  require_flag(checkpoint, "use_bidirectional_attention", false);
  layer.norm = {.rms = true,
                .epsilon = static_cast<float>(checkpoint.number("rms_norm_eps", 1e-12, 1, 1e-6)),
                .offset = 1};
  layer.activation = read_activation(checkpoint, "hidden_activation", "gelu_pytorch_tanh");
  layer.qkv_bias = layer.out_bias =
      checkpoint.flag("attention_bias", false) ? Bias::kAll : Bias::kNone;
  layer.gate_bias = layer.up_bias = layer.down_bias = Bias::kNone;
  decoder.scale = static_cast<float>(
      1.0 / std::sqrt(checkpoint.number("query_pre_attn_scalar", 1e-6, 1e9, 256)));
  decoder.embedding_scale = std::sqrt(static_cast<float>(layer.width));
  decoder.tied = checkpoint.flag("tie_word_embeddings", true);
  decoder.names.prefix = optional_prefix(checkpoint, "model.", "embed_tokens.weight");
  layer.names = {.attention_norm = "input_layernorm",
                 .attention_out_norm = "post_attention_layernorm",
                 .feed_forward_norm = "pre_feedforward_layernorm",
                 .feed_forward_out_norm = "post_feedforward_layernorm",
                 .q = "self_attn.q_proj",
                 .k = "self_attn.k_proj",
                 .v = "self_attn.v_proj",
                 .q_norm = "self_attn.q_norm",
                 .k_norm = "self_attn.k_norm",
                 .attention_out = "self_attn.o_proj",
                 .gate = "mlp.gate_proj",
                 .up = "mlp.up_proj",
                 .down = "mlp.down_proj"};
  // How another runtime keeps keys and values.
  checkpoint.ignore_keys({"cache_implementation"});
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
