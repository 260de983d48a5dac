#pragma once

// What a tokenizer.json of a WordPiece model says, or refusal of what is not supported.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/text/tokenizer/bert_characters.h"
#include "converter/text/tokenizer/settings.h"

namespace oxbow::convert {

struct WordPieceParts {
  /// For messages.
  std::string path;
  /// By id. None occurs twice.
  std::vector<std::string> tokens;
  std::vector<AddedTokenSetting> added;
  BertNormalizer normalizer;
  /// What pieces inside a word begin with.
  std::string prefix = "##";
  uint32_t max_word_characters = 100;
  std::string unknown;
  /// Need not be in the vocabulary.
  std::string mask = "[MASK]";
  /// What a text is put between.
  std::vector<std::string> before;
  std::vector<std::string> after;
  /// Between two texts, and behind the second.
  std::vector<std::string> pair_between;
  std::vector<std::string> pair_after;
  bool tidy = true;
};

/// Whether text is cut and put together as BERT does it, so that the kind of tokenizer made for that will do.
bool is_bert_json(const nlohmann::json& file);

/// Throws InputError.
WordPieceParts parse_wordpiece_json(const std::string& path, const nlohmann::json& file,
                                    uint32_t vocabulary);

}  // namespace oxbow::convert
