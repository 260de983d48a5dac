// Transformer-XL as written by labml.ai (labml_nn/transformers/xl): layer inputs of earlier
// segments are remembered, newest `mem_len` rows kept, and attended to with learned relative
// positions.

#include "converter/blocks/memory_decoder.h"

namespace oxbow::convert {

void import_labml_transformer_xl(const Checkpoint& checkpoint, const ImportOptions& options,
                                 Graph& graph) {
  build_memory_decoder(checkpoint, read_memory_decoder(checkpoint, options), graph);
}

}  // namespace oxbow::convert
