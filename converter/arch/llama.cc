// Llama, all versions with one feed-forward layer per block.

#include "converter/blocks/decoder_config.h"

namespace oxbow::convert {

void import_llama(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  Decoder decoder = read_llama_like(checkpoint, options);
  TransformerLayer& layer = decoder.layer;
  if (checkpoint.flag("attention_bias", false)) layer.qkv_bias = layer.out_bias = Bias::kAll;
  if (checkpoint.flag("mlp_bias", false)) {
    layer.gate_bias = layer.up_bias = layer.down_bias = Bias::kAll;
  }
  // How training was split over machines: another order of the same sums.
  checkpoint.ignore_keys({"pretraining_tp"});
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
