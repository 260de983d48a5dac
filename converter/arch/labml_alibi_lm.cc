// A decoder with labml.ai's ALiBi attention (labml_nn/transformers/alibi).

#include "converter/labml_decoder.h"

namespace oxbow::convert {

void import_labml_alibi_lm(const Checkpoint& checkpoint, const ImportOptions& options,
                           Graph& graph) {
  LabmlDecoder config = read_labml_decoder(checkpoint);
  config.shape.slopes = alibi_slopes(config.shape.heads);
  build_labml_decoder(checkpoint, options, config, graph);
}

}  // namespace oxbow::convert
