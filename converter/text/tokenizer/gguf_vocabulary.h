#pragma once

// The vocabulary that a GGUF file carries, checked as far as the file can be wrong in itself.
// gguf_tokenizer.h makes tables of it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "converter/formats/gguf.h"
#include "converter/text/tokenizer/gguf_patterns.h"
#include "converter/text/tokenizer/sentencepiece_model.h"

namespace oxbow::convert {

struct GgufVocabulary {
  enum class Kind : uint8_t {
    /// tokenizer.ggml.model gpt2: byte-level byte-pair encoding.
    kByteLevel,
    /// tokenizer.ggml.model llama: byte-pair encoding by SentencePiece.
    kSentencePiece,
    /// t5: pieces of SentencePiece with scores.
    kUnigram,
    /// bert: WordPiece, where pieces that begin a word have the mark of a space before them.
    kWordPiece,
    /// rwkv: the longest token.
    kLongest,
  };
  Kind kind = Kind::kByteLevel;
  /// How text is cut into words; kByteLevel only.
  const GgufCut* cut = nullptr;
  /// In the order of their ids, with a type for each.
  std::vector<std::string> tokens;
  std::vector<PieceType> types;
  /// Two parts with a space between them, the first to be joined first; kByteLevel only.
  std::vector<std::string> merges;
  /// One for each token; kSentencePiece and kUnigram only.
  std::vector<float> scores;
  /// Replacements as SentencePiece's files have them; kUnigram only.
  std::string char_map;
  /// kWordPiece only.
  bool lower_case = true;
  bool strip_accents = true;
  std::optional<uint32_t> mask_token;
  /// A space goes before the text; spaces at the ends go and several become one. kSentencePiece and kUnigram only.
  bool space_before_text = true;
  bool single_spaces = false;
  /// Tokens that a text is put between, or nothing; and those that mean something to others.
  std::optional<uint32_t> before;
  std::optional<uint32_t> after;
  std::optional<uint32_t> begin_token;
  std::optional<uint32_t> end_token;
  std::optional<uint32_t> unknown_token;
  /// The template of a chat; empty when there is none.
  std::string chat_template;
};

/// Nothing when the file has no vocabulary. Throws InputError for what is malformed or not supported.
std::optional<GgufVocabulary> read_gguf_vocabulary(const Gguf& gguf);

}  // namespace oxbow::convert
