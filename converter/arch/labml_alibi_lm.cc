// A decoder with labml.ai's ALiBi attention (labml_nn/transformers/alibi).

#include "converter/blocks/labml_decoder.h"

namespace oxbow::convert {

void import_labml_alibi_lm(const Checkpoint& checkpoint, const ImportOptions& options,
                           Graph& graph) {
  Decoder decoder = read_labml_decoder(checkpoint);
  decoder.shape.slopes = alibi_slopes(decoder.layer.heads.count);
  build_labml_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
