// Qwen3: Llama with norms over each head of queries and keys, and heads whose width is a key of its own.

#include "converter/blocks/decoder_config.h"

namespace oxbow::convert {

void import_qwen3(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  Decoder decoder = read_llama_like(checkpoint, options, 128);
  TransformerLayer& layer = decoder.layer;
  if (checkpoint.flag("attention_bias", false)) layer.qkv_bias = layer.out_bias = Bias::kAll;
  layer.names.q_norm = "self_attn.q_norm";
  layer.names.k_norm = "self_attn.k_norm";
  read_qwen_windows(checkpoint, decoder.shape);
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
