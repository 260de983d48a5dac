#pragma once

// What llama.cpp calls the tensors of each architecture, what Hugging Face's library calls them, and how llama.cpp's
// converter has laid them out. A new architecture that an importer knows under other names is a row here and a function in
// gguf_config.cc.

#include <cstdint>
#include <span>
#include <string_view>

namespace oxbow::convert {

/// How llama.cpp's converter has changed a tensor.
enum class GgufLayout : uint8_t {
  kSame,
  /// The other way round.
  kTransposed,
  /// The rows of each head: those of a rotated pair side by side, instead of half a head apart.
  kQueryPairs,
  kKeyPairs,
  /// All queries, all keys, all values, instead of the three of each head side by side.
  kPackedTogether,
  /// A matrix of taps without its dimension of 1 in the middle.
  kTaps,
  /// A vector that has become a matrix, or the other way round for one row per head.
  kFlat,
  kHeads,
  /// Six vectors, of r, w, k, v, a and g, in one tensor; `to` is the name without the letter.
  kSixVectors,
  // Other numbers: the norm's weight with the 1 that the model adds, minus the exponential of what was stored.
  kPlusOne,
  kMinusExp,
  // The same, of a vector that has become a matrix.
  kMinusExpFlat,
};

struct GgufName {
  std::string_view from;
  std::string_view to;
  GgufLayout layout = GgufLayout::kSame;
  bool required = true;
};

/// Names of tensors of a layer are without "blk.N." and `layer` + "N.".
struct GgufNames {
  std::span<const GgufName> outer;
  std::string_view layer;
  std::span<const GgufName> inner;
};

inline constexpr std::string_view kGgufWords = "token_embd.weight";
inline constexpr std::string_view kGgufHead = "output.weight";

extern const GgufNames kBertNames, kBloomNames, kDistilBertNames, kGemma3Names, kGpt2Names,
    kGptNeoxNames, kLfm2Names, kLlamaNames, kMambaNames, kMamba2Names, kMptNames, kPhi2Names,
    kPhi3Names, kQwen2Names, kQwen3Names, kRwkv7Names;

}  // namespace oxbow::convert
