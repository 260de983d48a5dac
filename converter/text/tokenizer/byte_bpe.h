#pragma once

// Byte-pair encodings of words, as GPT-2's, Llama 3's and their like: read from the files they come in
// and checked, so that the runtime's tables (schema/model.fbs, kind ByteBpe) follow from them alone.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "converter/text/tokenizer/normal_form.h"
#include "converter/text/tokenizer/pattern.h"
#include "converter/text/tokenizer/settings.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

/// What all files of this kind say in the end. Texts of tokens and merges are in GPT-2's form, where
/// each byte is a printable character.
struct ByteBpeVocabulary {
  /// Where it comes from, for messages.
  std::string source;
  /// By id; empty where no token has the id.
  std::vector<std::string> tokens;
  /// The first is joined first.
  std::vector<std::pair<std::string, std::string>> merges;
  /// Each has an id. Their texts are plain.
  std::vector<AddedTokenSetting> added;
  /// Each part is cut by the next; none: `split` says how.
  std::vector<SplitPattern> patterns;
  schema::WordSplit split = schema::WordSplit::Gpt2;
  NormalForm form;
  /// Behind the form.
  std::vector<std::unique_ptr<schema::NormalStepT>> steps;
  /// What tokens that end a word end with; empty: nothing.
  std::string suffix;
  /// Of the merges, where several have the same; empty: their order.
  std::vector<uint32_t> ranks;
  /// See the schema.
  uint32_t max_digits = 0;
  /// A word that is a token is that token, whatever the merges would make of it.
  bool whole_words = false;
  /// What a byte without a token becomes; empty: nothing.
  std::string unknown;
  std::vector<uint32_t> before;
  std::vector<uint32_t> after;
  std::vector<uint32_t> pair_between;
  std::vector<uint32_t> pair_after;
  /// Empty: none.
  std::string mask;
};

/// Throws InputError when it does not hold together or is larger than the model's `vocabulary`.
std::unique_ptr<schema::TokenizerT> build_byte_bpe(ByteBpeVocabulary vocabulary, uint32_t tokens);

/// Where the patterns are those of a named way to cut, takes that: it needs no tables.
void name_split(ByteBpeVocabulary& vocabulary);

/// From vocab.json and merges.txt.
std::unique_ptr<schema::TokenizerT> read_byte_bpe(const std::string& vocabulary_path,
                                                  const std::string& merges_path,
                                                  const TokenizerSettings& settings,
                                                  uint32_t tokens);

/// From tokenizer.json, whose model is of type BPE. What changes results and is not known is refused;
/// what it says about truncation and padding is not part of a tokenizer here.
std::unique_ptr<schema::TokenizerT> read_byte_bpe_json(const std::string& path,
                                                       const nlohmann::json& tokenizer,
                                                       const TokenizerSettings& settings,
                                                       uint32_t tokens);

/// The id of each text in "vocab": an object of ids below `tokens`, no two the same.
std::vector<std::string> read_vocabulary(const std::string& source, const nlohmann::json& vocab,
                                         uint32_t tokens);

/// Bytes in GPT-2's form.
std::string printable_of_bytes(const std::string& bytes);
/// The bytes a text in GPT-2's form stands for; false when it is not in that form.
bool bytes_of_printable(const std::string& text, std::string* bytes);

}  // namespace oxbow::convert
