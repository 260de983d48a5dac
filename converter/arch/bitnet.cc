// BitNet b1.58: Llama with squared ReLU, a norm before each half's last matrix, and matrices of three values (see
// converter/formats/bitnet.h).

#include "converter/blocks/decoder_config.h"

namespace oxbow::convert {

void import_bitnet(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  Decoder decoder = read_llama_like(checkpoint, options, 0, {.default_theta = 500000});
  TransformerLayer& layer = decoder.layer;
  layer.activation = read_activation(checkpoint, "hidden_act", "relu2");
  if (checkpoint.flag("attention_bias", false)) layer.qkv_bias = layer.out_bias = Bias::kAll;
  layer.names.attention_out_input_norm = "self_attn.attn_sub_norm";
  layer.names.down_input_norm = "mlp.ffn_sub_norm";
  // How training was split over machines: another order of the same sums.
  checkpoint.ignore_keys({"pretraining_tp"});
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
