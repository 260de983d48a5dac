#pragma once

// T5 and its kin as translators: root-mean-square norms, no attention scale, and a bias for each bucket of distances that
// the layers of a stack share. What differs is what the encoder's queries see, and the feed-forward halves.

#include <cstdint>
#include <string>

#include "converter/blocks/experts.h"
#include "converter/formats/checkpoint.h"
#include "converter/graph.h"

namespace oxbow::convert {

struct T5Variant {
  /// Of the encoder's attention, in the names of tensors.
  std::string attention = "SelfAttention";
  /// Tokens that a query sees on each side; 0: all.
  uint32_t radius = 0;
  /// Unless 0: also the sums of blocks of so many tokens.
  uint32_t block = 0;
  /// Tokens of a text when the checkpoint names none.
  uint32_t length = 512;
  /// Of the feed-forward half, in the names of tensors.
  std::string dense = "DenseReluDense";
  /// Without their width, their inner width and their activation.
  Experts experts{};
  uint32_t encoder_experts_every = 0, decoder_experts_every = 0;
};

void import_t5_model(const Checkpoint& checkpoint, const ImportOptions& options,
                     const T5Variant& variant, Graph& graph);

}  // namespace oxbow::convert
