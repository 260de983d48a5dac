// Llama, all versions with one feed-forward layer per block.

#include "converter/llama_decoder.h"

namespace oxbow::convert {

void import_llama(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  build_llama_decoder(checkpoint, options, read_llama_decoder(checkpoint, options), graph);
}

}  // namespace oxbow::convert
