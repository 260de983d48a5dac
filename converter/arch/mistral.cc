// Mistral: Llama with a window, so that its stream is endless.

#include "converter/blocks/decoder_config.h"
#include "converter/blocks/transformers_version.h"

namespace oxbow::convert {

void import_mistral(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  Decoder decoder = read_llama_like(checkpoint, options);
  // A missing key means the window of the first Mistral; null means none.
  const uint32_t fallback = checkpoint.has_key("sliding_window") ? 0 : 4096;
  const uint32_t window = checkpoint.size("sliding_window", 1, kMaxSize - 1, fallback);
  decoder.shape.window = window_keys(checkpoint, window);
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
