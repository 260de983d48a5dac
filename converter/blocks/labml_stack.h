#pragma once

// The layers of labml.ai's decoders whose attention is their own affair: plain embeddings, norms before each
// half of a layer, a final norm and a generator, under the names src_embed, transformer and generator.

#include <cstdint>
#include <string>

#include "converter/blocks/parts.h"
#include "converter/formats/checkpoint.h"
#include "converter/graph.h"

namespace oxbow::convert {

struct LabmlStackShape {
  uint32_t vocabulary = 0;
  uint32_t width = 0;
  uint32_t inner = 0;
  uint32_t layers = 0;
  float epsilon = 0;
  schema::Activation activation = schema::Activation::Relu;
};

/// labml.ai's FeedForward: `of` layer1, its activation, layer2. With `of` linear_v the activation is multiplied by what
/// that gives. Biases are there where the checkpoint has them.
uint32_t labml_feed_forward(const Checkpoint& checkpoint, GraphBuilder& builder, Parts& parts,
                            const std::string& name, uint32_t z, const std::string& of,
                            const LabmlStackShape& shape);
/// Its keys; what tensors are there tells the rest.
schema::Activation read_labml_feed_forward(const Checkpoint& checkpoint);

LabmlStackShape read_labml_stack(const Checkpoint& checkpoint);

class LabmlStack {
 public:
  /// Begins the entry point; its vocabulary is that of the shape. All of these outlive the stack.
  LabmlStack(const Checkpoint& checkpoint, const LabmlStackShape& shape, GraphBuilder::Entry entry,
             Graph& graph);

  GraphBuilder& builder() { return builder_; }
  Parts& parts() { return parts_; }
  static std::string name(uint32_t layer) { return "layer" + std::to_string(layer); }
  static std::string tensors(uint32_t layer) {
    return "transformer.layers." + std::to_string(layer) + ".";
  }

  uint32_t embed();
  /// What the attention of a layer gets.
  uint32_t normed(uint32_t layer, uint32_t x);
  /// x and what the second half of the layer adds.
  uint32_t feed_forward(uint32_t layer, uint32_t x);
  /// Norm, generator and metadata with these sizes and the shape's.
  void finish(uint32_t x, std::vector<std::pair<std::string, uint32_t>> sizes);

 private:
  const Checkpoint& checkpoint_;
  const LabmlStackShape& shape_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
};

}  // namespace oxbow::convert
