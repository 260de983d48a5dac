#pragma once

// How llama.cpp cuts text into words, by the names that GGUF files give: tokenizer.ggml.pre.

#include <span>
#include <string_view>

namespace oxbow::convert {

struct GgufCut {
  std::string_view name;
  /// Each part is cut by the next.
  std::span<const char* const> patterns;
  /// A word that is a token needs no merges.
  bool whole_words = false;
  /// Whether a text begins with the token that begins texts, when the file does not say.
  bool adds_begin = false;
  /// The tokenizer that the file was made of normalises text to NFC.
  bool composes = false;
};

/// Null for a name that is not known.
const GgufCut* find_gguf_cut(std::string_view name);

}  // namespace oxbow::convert
