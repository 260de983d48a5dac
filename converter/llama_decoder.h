#pragma once

// Llama as in Hugging Face transformers, and models that differ from it in a few numbers: root mean
// square norms, rotary positions, groups of query heads that share a key head, gated feed-forward
// layers.

#include <cstdint>

#include "converter/causal_decoder.h"

namespace oxbow::convert {

struct LlamaDecoder {
  CausalShape shape;
  uint32_t width = 0;
  uint32_t inner = 0;
  float epsilon = 0;
  schema::Activation activation = schema::Activation::Silu;
  bool attention_bias = false;
  bool feed_forward_bias = false;
  bool tied = false;
};

/// The keys that all such models share.
LlamaDecoder read_llama_decoder(const Checkpoint& checkpoint, const ImportOptions& options);

void build_llama_decoder(const Checkpoint& checkpoint, const ImportOptions& options,
                         const LlamaDecoder& config, Graph& graph);

}  // namespace oxbow::convert
