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
  bool tidy = true;
};

/// Throws InputError.
WordPieceParts parse_wordpiece_json(const std::string& path, const nlohmann::json& file,
                                    uint32_t vocabulary);

}  // namespace oxbow::convert
