#pragma once

// What lies beside a vocabulary in a folder: tokenizer_config.json, special_tokens_map.json and
// added_tokens.json. Later files only complete what earlier ones say.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace oxbow::convert {

struct AddedTokenSetting {
  std::string text;
  /// Missing where a list names only texts.
  std::optional<uint32_t> id;
  bool special = false;
  bool strip_left = false;
  bool strip_right = false;
  bool single_word = false;
  /// Looked for in the normalised text.
  bool normalized = false;
};

struct TokenizerSettings {
  /// tokenizer_config.json, or an empty object.
  nlohmann::json config = nlohmann::json::object();
  /// "bos_token" to its text, and so on.
  std::map<std::string, std::string> named;
  /// By id where there is one, then those without in the order of the files.
  std::vector<AddedTokenSetting> added;
  /// The template of a chat; empty when there is none.
  std::string chat_template;
  /// Files that were read, without their folder.
  std::vector<std::string> files;
  /// Keys of tokenizer_config.json that say something and that nobody here asks for.
  std::vector<std::string> ignored;

  /// The value of a key of tokenizer_config.json, or `fallback` when it is missing or null. Throws
  /// InputError when it is neither true nor false.
  bool flag(const std::string& key, bool fallback) const;
};

/// Throws InputError for a file that is not what it must be.
TokenizerSettings read_tokenizer_settings(const std::string& directory);

}  // namespace oxbow::convert
