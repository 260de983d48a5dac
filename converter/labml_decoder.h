#pragma once

// A decoder of labml.ai's modules: plain embeddings, layers with norms before each half, biased
// projections, a final norm and a generator. Positions are what the importer puts into `shape`.

#include <cstdint>

#include "converter/causal_decoder.h"

namespace oxbow::convert {

struct LabmlDecoder {
  CausalShape shape;
  uint32_t width = 0;
  uint32_t inner = 0;
  float epsilon = 0;
  schema::Activation activation = schema::Activation::Relu;
  bool gated = false;
  bool bias1 = true;
  bool bias2 = true;
  bool bias_gate = true;
};

LabmlDecoder read_labml_decoder(const Checkpoint& checkpoint);

void build_labml_decoder(const Checkpoint& checkpoint, const ImportOptions& options,
                         const LabmlDecoder& config, Graph& graph);

}  // namespace oxbow::convert
