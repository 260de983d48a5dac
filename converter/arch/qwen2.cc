// Qwen2: Llama with biases on queries, keys and values, and, in some models, layers with a window.

#include "converter/blocks/decoder_config.h"

namespace oxbow::convert {

void import_qwen2(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  Decoder decoder = read_llama_like(checkpoint, options);
  decoder.layer.qkv_bias = Bias::kAll;
  read_qwen_windows(checkpoint, decoder.shape);
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
