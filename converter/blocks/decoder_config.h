#pragma once

// Configurations of decoders in the words that most of Hugging Face's share.

#include "converter/blocks/decoder.h"

namespace oxbow::convert {

/// Sizes by the keys that nearly all have: hidden_size, num_attention_heads, ... `head_width`: what a
/// missing head_dim means; 0: hidden_size / num_attention_heads.
Decoder read_decoder(const Checkpoint& checkpoint, uint32_t head_width = 0);

/// Where a configuration says how rotary positions turn.
struct RopeKeys {
  std::string theta = "rope_theta";
  double default_theta = 1e4;
  /// The share of each head that is turned; empty: all of it, always.
  std::string part{};
  double default_part = 1;
  /// Empty: rope_parameters, which has all of it, or else rope_scaling and keys beside it.
  std::string object{};
  /// Whether kinds of scaling are read that change more than frequencies.
  bool for_long_texts = false;
};

/// Rotary positions, scaled as the configuration says.
struct Rope {
  /// One for each pair.
  std::vector<float> frequencies;
  /// What elements of queries and keys that are turned are multiplied by.
  float gain = 1;
  /// Tokens that this is for, where the model has more positions; 0: for all.
  uint32_t length = 0;
};
Rope read_rope(const Checkpoint& checkpoint, const ImportOptions& options, const CausalShape& shape,
               uint32_t head_width, const RopeKeys& keys = {});
void set_rope(CausalShape& shape, Rope rope);

/// The same with what Llama and its kin have in common: root mean square norms, rotary positions, gated
/// feed-forward layers, no biases, and the names of the tensors.
Decoder read_llama_like(const Checkpoint& checkpoint, const ImportOptions& options,
                        uint32_t head_width = 0, const RopeKeys& rope = {});

/// For each layer whether it sees all keys: what layer_types says, or `fallback`.
std::vector<bool> read_layer_types(const Checkpoint& checkpoint, const std::vector<bool>& fallback);

/// A window for the layers that do not see all keys.
void set_windows(CausalShape& shape, uint32_t window, std::vector<bool> sees_all);

/// Qwen's windows: from a certain layer on, and only if use_sliding_window.
void read_qwen_windows(const Checkpoint& checkpoint, CausalShape& shape);

}  // namespace oxbow::convert
