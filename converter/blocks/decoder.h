#pragma once

// Causal decoders without a memory of their own, as a table: embeddings, layers of one kind, a head.
// An importer reads its configuration into it; which keys are kept is causal_decoder.h's.

#include <cstdint>
#include <optional>
#include <string>

#include "converter/blocks/causal_decoder.h"
#include "converter/blocks/transformer_layer.h"

namespace oxbow::convert {

/// Without .weight and .bias. What is not there has no name.
struct DecoderNames {
  /// What the names of all tensors but the head's begin with.
  std::string prefix;
  std::string words = "embed_tokens";
  /// A table of positions.
  std::string places;
  std::string embedding_norm;
  /// Between embeddings and layers of different widths, without biases.
  std::string projection_in, projection_out;
  /// Before a layer's index.
  std::string layers = "layers.";
  std::string final_norm = "norm";
  std::string head = "lm_head";
};

struct Decoder {
  CausalShape shape;
  TransformerLayer layer;
  DecoderNames names;
  /// On scores; nothing: 1 / sqrt(head width).
  std::optional<float> scale;
  /// The scale is divided by a layer's number, from 1.
  bool scale_by_layer = false;
  float embedding_scale = 1;
  /// Of the tables of words; 0: as the layers'.
  uint32_t embedding_width = 0;
  /// The head is the table of words.
  bool tied = true;
  bool head_bias = false;
  /// Logits become cap tanh(logits / cap); 0: they do not.
  float logit_cap = 0;
  /// The width of the feed-forward layers is the model's own, not the configuration's.
  bool fixed_inner = false;
};

void build_decoder(const Checkpoint& checkpoint, const ImportOptions& options,
                   const Decoder& decoder, Graph& graph);

}  // namespace oxbow::convert
