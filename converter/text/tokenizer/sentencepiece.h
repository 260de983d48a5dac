#pragma once

// SentencePiece vocabularies: files `*.model` and `*.spm`, those of translators that put a list of ids
// beside two of them, and what other formats took over from them.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "converter/text/tokenizer/sentencepiece_model.h"
#include "converter/text/tokenizer/settings.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

struct SentencePieceOptions {
  /// Tokens beyond the file's, or that the file has and text may name too. One without an id is one
  /// of the file's, or one of T5's "<extra_id_0>" and so on, whose ids are counted from the end.
  std::vector<AddedTokenSetting> added;
  /// What a text is put between.
  std::vector<uint32_t> before;
  std::vector<uint32_t> after;
  /// What follows a special token gets no space, as the text itself may.
  bool space_at_start_only = false;
};

/// Throws InputError when the model is malformed, uses what is not supported, or does not fit a
/// vocabulary of this size.
std::unique_ptr<schema::TokenizerT> make_sentencepiece(const SentencePieceModel& model,
                                                       const SentencePieceOptions& options,
                                                       uint32_t vocabulary);
std::unique_ptr<schema::TokenizerT> read_sentencepiece(const std::string& path,
                                                       const SentencePieceOptions& options,
                                                       uint32_t vocabulary);

/// A Marian translator: text is cut by the file `source`, the ids are those of the JSON file `vocab`,
/// and tokens become text as the file `target` says. A text ends with the token "</s>".
std::unique_ptr<schema::TokenizerT> read_marian(const std::string& source,
                                                const std::string& target, const std::string& vocab,
                                                uint32_t vocabulary);

}  // namespace oxbow::convert
