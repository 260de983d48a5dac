#pragma once

// Encoder and decoder as two tables of layers (transformer_layer.h) and one builder. Positions, embeddings and the head
// are the importer's:
//
//   translator.begin_encoder();  translator.encode(embedded rows);
//   translator.begin_decoder();  rows = translator.decode(embedded rows);  logits of them

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "converter/blocks/encoder_decoder.h"
#include "converter/blocks/transformer_layer.h"

namespace oxbow::convert {

/// Encoder or decoder.
struct TextStack {
  /// Of its tensors in the graph.
  std::string name;
  uint32_t layers = 0;
  uint32_t vocabulary = 0;
  TransformerLayer layer;
  /// Before and behind the number of a layer in the names of its tensors.
  std::string prefix, suffix;
  float scale = 1.0f;
  /// Keys and values are computed before queries.
  bool keys_first = false;
  /// Behind the encoder's last layer; whole name.
  std::string final_norm;
  /// Each layer's input can be looked at, as <name>.hidden_states.<index>.
  bool shows_states = false;

  HeadShape heads() const;
};

class Translator {
 public:
  /// All of these outlive it.
  Translator(const Checkpoint& checkpoint, const TextStack& encoder, const TextStack& decoder,
             const TextLengths& lengths, Graph& graph);

  void begin_encoder();
  /// Which rows are no padding, by the caller.
  uint32_t mask() const { return mask_; }
  /// From queries, and the keys and values of the text itself, to the heads' outputs.
  using Attend =
      std::function<uint32_t(const LayerBuilder::Layer&, uint32_t q, GraphBuilder::Source own)>;
  /// From the embedded rows to the output, and to what the decoder will look at.
  void encode(uint32_t x, const Attend& attend);
  /// The same where every token sees every one that is no padding.
  void encode(uint32_t x, const HeadShape& heads);
  /// Keys and values of other rows of a layer of the encoder.
  GraphBuilder::Source encoder_keys(const LayerBuilder::Layer& layer) {
    return keys(encoder_layers_, layer);
  }
  void begin_decoder();
  /// To the output of the last layer.
  uint32_t decode(uint32_t x, const HeadShape& heads);

  GraphBuilder& builder() { return builder_; }
  Parts& parts() { return parts_; }

  static std::string state_name(const TextStack& stack, uint32_t index);

 private:
  /// Keys and values of `layer`'s rows, under the names of its own attention or of the one over the encoder's output.
  GraphBuilder::Source keys(LayerBuilder& layers, const LayerBuilder::Layer& layer);
  /// The same with the queries, in the order of the stack.
  GraphBuilder::Source keys_and_queries(const TextStack& stack, LayerBuilder& layers,
                                        const LayerBuilder::Layer& layer, uint32_t* q);
  /// Rows that are no padding, through the projections of each layer of the decoder.
  void keep(uint32_t x);
  void show(const TextStack& stack, uint32_t index, uint32_t x);

  const TextStack& encoder_;
  const TextStack& decoder_;
  const TextLengths& lengths_;
  GraphBuilder builder_;
  Parts parts_;
  LayerBuilder encoder_layers_, decoder_layers_;
  uint32_t mask_ = GraphBuilder::kNone;
  /// Keys and values of the encoder's output, for each layer of the decoder.
  std::vector<GraphBuilder::Source> kept_;
};

}  // namespace oxbow::convert
