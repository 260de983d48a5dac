#include "converter/blocks/labml_decoder.h"

namespace oxbow::convert {

Decoder read_labml_decoder(const Checkpoint& checkpoint) {
  Decoder decoder;
  TransformerLayer& layer = decoder.layer;
  decoder.shape.vocabulary = read_labml_vocabulary(checkpoint);
  decoder.shape.layers = checkpoint.size("n_layers", 1, kMaxLayers);
  layer.width = checkpoint.size("d_model", 1, kMaxSize);
  layer.heads = read_heads(checkpoint, "d_model", layer.width, "heads");
  layer.inner = checkpoint.size("d_ff", 1, kMaxSize);
  layer.norm.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-12, 1, 1e-5));
  layer.activation = read_activation(checkpoint, "activation", "relu");
  const auto bias = [&](const char* key) {
    return checkpoint.flag(key, true) ? Bias::kAll : Bias::kNone;
  };
  const Bias first = bias("bias1"), gate = bias("bias_gate");
  layer.down_bias = bias("bias2");
  layer.names = {.attention_norm = "norm_self_attn",
                 .feed_forward_norm = "norm_ff",
                 .q = "self_attn.query.linear",
                 .k = "self_attn.key.linear",
                 .v = "self_attn.value.linear",
                 .attention_out = "self_attn.output",
                 .up = "feed_forward.layer1",
                 .down = "feed_forward.layer2"};
  layer.up_bias = first;
  if (checkpoint.flag("is_gated", false)) {
    // The layer with the activation keeps its name.
    layer.names.gate = "feed_forward.layer1";
    layer.names.up = "feed_forward.linear_v";
    layer.gate_bias = first;
    layer.up_bias = gate;
  }
  decoder.names.words = "src_embed";
  decoder.names.layers = "encoder.layers.";
  decoder.names.final_norm = "encoder.norm";
  decoder.names.head = "generator.projection";
  decoder.tied = false;
  decoder.head_bias = true;
  checkpoint.ignore_keys({"seq_len"});
  ignore_common_keys(checkpoint);
  return decoder;
}

void build_labml_decoder(const Checkpoint& checkpoint, const ImportOptions& options,
                         const Decoder& decoder, Graph& graph) {
  build_decoder(checkpoint, options, decoder, graph);
  graph.model.metadata->time_major = true;
}

}  // namespace oxbow::convert
