#pragma once

// How llama.cpp cuts text into words, by the names that GGUF files give: tokenizer.ggml.pre.

#include <span>
#include <string_view>
#include <vector>

#include "converter/text/tokenizer/pattern.h"

namespace oxbow::convert {

struct GgufCut {
  std::string_view name;
  /// Each part is cut by the next.
  std::span<const char* const> patterns;
  /// Before these, runs of what `tokenizers` takes for punctuation are words.
  bool punctuation_apart = false;
  /// A word that is a token needs no merges.
  bool whole_words = false;
  /// Whether a text begins with the token that begins texts, when the file does not say.
  bool adds_begin = false;
  /// The tokenizer that the file was made of normalises text to NFC.
  bool composes = false;
};

/// Null for a name that is not known.
const GgufCut* find_gguf_cut(std::string_view name);

/// All that cut text, in their order.
std::vector<SplitPattern> patterns_of(const GgufCut& cut);

}  // namespace oxbow::convert
