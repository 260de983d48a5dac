#include "converter/text/tokenizer/settings.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "host/errors.h"
#include "host/io_file.h"
#include "host/json_file.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;

// Beside those that name a token: what readers look at, and what says nothing about tokens.
constexpr std::string_view kKnownKeys[] = {"added_tokens_decoder",
                                           "additional_special_tokens",
                                           "chat_template",
                                           "do_lower_case",
                                           "extra_ids",
                                           "extra_special_tokens",
                                           "legacy",
                                           "never_split",
                                           "strip_accents",
                                           "tokenize_chinese_chars",
                                           "tokenizer_class",
                                           "auto_map",
                                           "model_input_names",
                                           "model_max_length",
                                           "name_or_path",
                                           "padding_side",
                                           "separate_vocabs",
                                           "source_lang",
                                           "special_tokens_map_file",
                                           "target_lang",
                                           "tokenizer_file",
                                           "truncation_side"};

class Reader {
 public:
  explicit Reader(const std::string& directory) : directory_(directory) {}

  TokenizerSettings read() {
    if (take("tokenizer_config.json")) {
      read_added_decoder();
      out_.config = file_;
      read_named();
      read_chat();
      find_ignored();
    }
    if (take("special_tokens_map.json")) read_named();
    if (take("added_tokens.json")) read_added();
    if (out_.chat_template.empty() && file_exists(directory_ + "/chat_template.jinja")) {
      out_.chat_template = read_file(directory_ + "/chat_template.jinja");
      out_.files.push_back("chat_template.jinja");
    }
    std::stable_sort(out_.added.begin(), out_.added.end(), [](const auto& a, const auto& b) {
      return a.id.value_or(UINT32_MAX) < b.id.value_or(UINT32_MAX);
    });
    return std::move(out_);
  }

 private:
  bool take(const std::string& name) {
    path_ = directory_ + "/" + name;
    if (!file_exists(path_)) return false;
    file_ = read_json_object(path_);
    out_.files.push_back(name);
    return true;
  }

  [[noreturn]] void fail(const std::string& key, const json& value, const std::string& expected) {
    throw InputError(path_ + ": " + printable(key, 60) + " is " +
                     printable(value.dump(-1, ' ', true), 60) + ", expected " + expected);
  }

  bool mark(const std::string& key, const json& token, const char* name, bool fallback) {
    const auto place = token.find(name);
    if (place == token.end()) return fallback;
    if (!place->is_boolean()) fail(key + "." + name, *place, "true or false");
    return place->get<bool>();
  }

  /// A token is its text, or an object with its text and how it is looked for.
  AddedTokenSetting token(const std::string& key, const json& value, bool special) {
    AddedTokenSetting out;
    out.special = special;
    if (value.is_string()) {
      out.text = value.get<std::string>();
      return out;
    }
    if (!value.is_object() || !value.contains("content") || !value["content"].is_string()) {
      fail(key, value, "a text or an object with content");
    }
    out.text = value["content"].get<std::string>();
    out.special = mark(key, value, "special", special);
    out.strip_left = mark(key, value, "lstrip", false);
    out.strip_right = mark(key, value, "rstrip", false);
    out.single_word = mark(key, value, "single_word", false);
    out.normalized = mark(key, value, "normalized", !out.special);
    return out;
  }

  /// Completes what is known of a text, or adds it.
  void add(const AddedTokenSetting& token) {
    const auto [place, is_new] = places_.emplace(token.text, out_.added.size());
    if (is_new) {
      out_.added.push_back(token);
    } else if (AddedTokenSetting& known = out_.added[place->second]; !known.id) {
      known.id = token.id;
    }
  }

  void find_ignored() {
    for (const auto& [key, value] : file_.items()) {
      const bool idle = value.is_null() || value == false ||
                        (!value.is_primitive() && value.empty()) || key.starts_with('_');
      const bool known =
          key.ends_with("_token") ||
          std::find(std::begin(kKnownKeys), std::end(kKnownKeys), key) != std::end(kKnownKeys);
      if (!idle && !known) out_.ignored.push_back(key);
    }
  }

  void read_added_decoder() {
    const auto list = file_.find("added_tokens_decoder");
    if (list == file_.end() || list->is_null()) return;
    if (!list->is_object()) fail("added_tokens_decoder", *list, "an object");
    for (const auto& [key, value] : list->items()) {
      AddedTokenSetting entry = token("added_tokens_decoder." + key, value, false);
      entry.id = number(key, value);
      add(entry);
    }
  }

  uint32_t number(const std::string& text, const json& value) {
    const bool digits =
        !text.empty() && text.size() <= 9 &&
        std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits) fail(text, value, "a token id for its name");
    return static_cast<uint32_t>(std::stoul(text));
  }

  void read_added() {
    for (const auto& [text, id] : file_.items()) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX) fail(text, id, "a token id");
      AddedTokenSetting entry;
      entry.text = text;
      entry.id = id.get<uint32_t>();
      entry.normalized = true;
      add(entry);
    }
  }

  void read_named() {
    for (const auto& [key, value] : file_.items()) {
      if (!key.ends_with("_token") || value.is_null() || value.is_boolean()) continue;
      const AddedTokenSetting entry = token(key, value, true);
      out_.named.emplace(key, entry.text);
      add(entry);
    }
    const auto more = file_.find("additional_special_tokens");
    if (more == file_.end() || more->is_null()) return;
    if (!more->is_array()) fail("additional_special_tokens", *more, "a list");
    for (const json& value : *more) add(token("additional_special_tokens", value, true));
  }

  void read_chat() {
    const auto place = file_.find("chat_template");
    if (place == file_.end() || place->is_null()) return;
    if (place->is_string()) {
      out_.chat_template = place->get<std::string>();
      return;
    }
    if (!place->is_array()) fail("chat_template", *place, "a text or a list of named texts");
    for (const json& entry : *place) {
      if (entry.is_object() && entry.value("name", json()) == "default" &&
          entry.value("template", json()).is_string()) {
        out_.chat_template = entry["template"].get<std::string>();
      }
    }
  }

  std::string directory_;
  std::string path_;
  json file_;
  TokenizerSettings out_;
  /// Of texts in out_.added, until they are sorted.
  std::unordered_map<std::string, size_t> places_;
};

}  // namespace

bool TokenizerSettings::flag(const std::string& key, bool fallback) const {
  const auto place = config.find(key);
  if (place == config.end() || place->is_null()) return fallback;
  if (!place->is_boolean()) {
    throw InputError("tokenizer_config.json: " + key + " is " +
                     printable(place->dump(-1, ' ', true), 60) + ", expected true or false");
  }
  return place->get<bool>();
}

TokenizerSettings read_tokenizer_settings(const std::string& directory) {
  return Reader(directory).read();
}

}  // namespace oxbow::convert
