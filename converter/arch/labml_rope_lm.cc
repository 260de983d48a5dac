// A decoder with labml.ai's rotary attention (labml_nn/transformers/rope): the first part of each
// head is turned.

#include "converter/blocks/labml_decoder.h"
#include "converter/blocks/rope.h"
#include "host/errors.h"

namespace oxbow::convert {

void import_labml_rope_lm(const Checkpoint& checkpoint, const ImportOptions& options,
                          Graph& graph) {
  Decoder decoder = read_labml_decoder(checkpoint);
  const double part = checkpoint.number("rope_percentage", 0, 1, 0.5);
  const auto turned = static_cast<uint32_t>(decoder.layer.heads.width * part);
  if (checkpoint.size("d_rope", 0, kMaxSize, turned) != turned || turned % 2 != 0) {
    checkpoint.refuse("rope_percentage turns " + std::to_string(turned) +
                      " elements of each head, expected an even number, and d_rope if it is there");
  }
  decoder.shape.frequencies = rope_frequencies(checkpoint.number("base", 1, 1e12, 1e4), turned);
  build_labml_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
