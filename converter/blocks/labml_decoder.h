#pragma once

// Decoders of labml.ai's modules: plain embeddings, layers with norms before each half, biased
// projections, a final norm and a generator. Positions are what the importer puts into `shape`.

#include "converter/blocks/decoder.h"

namespace oxbow::convert {

Decoder read_labml_decoder(const Checkpoint& checkpoint);

void build_labml_decoder(const Checkpoint& checkpoint, const ImportOptions& options,
                         const Decoder& decoder, Graph& graph);

}  // namespace oxbow::convert
