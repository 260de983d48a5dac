#include "converter/formats/sentence_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "converter/formats/limits.h"
#include "host/errors.h"
#include "host/folder.h"
#include "host/io_file.h"
#include "host/json_file.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;

struct PoolingRow {
  const char* key;
  /// As the library calls it; null: it cannot do that.
  const char* name;
};
constexpr PoolingRow kPoolings[] = {
    {"pooling_mode_cls_token", "first"},
    {"pooling_mode_mean_tokens", "mean"},
    {"pooling_mode_max_tokens", "max"},
    {"pooling_mode_lasttoken", "last"},
    {"pooling_mode_mean_sqrt_len_tokens", nullptr},
    {"pooling_mode_weightedmean_tokens", nullptr},
};

bool flag(const std::string& path, const json& object, const char* key, bool fallback) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return fallback;
  if (!found->is_boolean()) throw InputError(path + ": " + key + " is not true or false");
  return found->get<bool>();
}

std::string text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// A folder of a module, inside the directory.
std::string folder_of(const std::string& path, const json& module) {
  std::string name = text(module, "path");
  if (name.find("..") != std::string::npos || name.starts_with('/') ||
      name.find('\0') != std::string::npos) {
    throw InputError(path + ": module path " + printable(name) +
                     " leads out of the directory, expected a folder in it");
  }
  return name;
}

void read_pooling(const std::string& path, SentenceModel& model) {
  const json config = read_json_object(path);
  std::vector<std::string> chosen;
  for (const PoolingRow& row : kPoolings) {
    if (!flag(path, config, row.key, false)) continue;
    chosen.push_back(row.key);
    if (row.name != nullptr) model.pooling = row.name;
  }
  // Newer versions write one word.
  const std::string word = text(config, "pooling_mode");
  if (!word.empty()) chosen.push_back(word);
  if (word == "cls") model.pooling = "first";
  if (word == "mean" || word == "max") model.pooling = word;
  if (word == "lasttoken") model.pooling = "last";
  if (chosen.size() != 1 || model.pooling.empty()) {
    model.pooling.clear();
    std::string list;
    for (const std::string& key : chosen) list += (list.empty() ? "" : ", ") + printable(key);
    model.warnings.push_back(path + ": pooling by " + (list.empty() ? "nothing" : list) +
                             " is not supported, so the file does not say how to embed a text");
  }
  if (!flag(path, config, "include_prompt", true)) {
    model.warnings.push_back(path +
                             ": include_prompt is false, which is not supported: prompts count as "
                             "the text does");
  }
}

void read_lengths(const std::string& path, SentenceModel& model) {
  const json config = read_json_object(path);
  const auto length = config.find("max_seq_length");
  if (length != config.end() && !length->is_null()) {
    if (!length->is_number_unsigned() || length->get<uint64_t>() == 0 ||
        length->get<uint64_t>() > kMaxSize) {
      throw InputError(path + ": max_seq_length is " + printable(length->dump()) +
                       ", expected an integer from 1 to " + std::to_string(kMaxSize));
    }
    model.max_tokens = length->get<uint32_t>();
  }
  if (flag(path, config, "do_lower_case", false)) {
    model.warnings.push_back(path +
                             ": do_lower_case is true: give texts in lower case unless the "
                             "tokenizer makes them so");
  }
}

void read_prompts(const std::string& path, SentenceModel& model) {
  const json config = read_json_object(path);
  const auto prompts = config.find("prompts");
  if (prompts != config.end() && prompts->is_object()) {
    for (const auto& [name, words] : prompts->items()) {
      if (!words.is_string())
        throw InputError(path + ": prompt " + printable(name) + " is no text");
      if (words != "") model.prompts[name] = words.get<std::string>();
    }
  }
  const std::string chosen = text(config, "default_prompt_name");
  if (model.prompts.contains(chosen)) model.default_prompt = chosen;
}

}  // namespace

std::map<std::string, std::string> SentenceModel::settings() const {
  std::map<std::string, std::string> out;
  if (pooling.empty()) return out;
  out["embed_pooling"] = pooling;
  out["embed_normalise"] = normalise ? "true" : "false";
  if (max_tokens != 0) out["embed_max_tokens"] = std::to_string(max_tokens);
  for (const auto& [name, words] : prompts) out["embed_prompt." + name] = words;
  if (!default_prompt.empty()) out["embed_default_prompt"] = default_prompt;
  return out;
}

std::optional<SentenceModel> read_gguf_sentences(const Gguf& gguf) {
  // By the numbers of llama.cpp; 0 is none.
  constexpr const char* kNames[] = {"", "mean", "first", "last"};
  const std::string key = gguf.text("general.architecture").value_or("") + ".pooling_type";
  const uint64_t type = gguf.integer(key).value_or(0);
  if (type == 0 || type >= std::size(kNames)) return std::nullopt;
  SentenceModel model;
  model.pooling = kNames[type];
  model.normalise = true;
  return model;
}

std::optional<SentenceModel> read_sentence_model(const std::string& directory) {
  const std::string path = directory + "/modules.json";
  if (!is_folder(directory) || !file_exists(path)) return std::nullopt;
  const json modules = read_json(path);
  if (!modules.is_array()) throw InputError(path + " is not a list of modules");
  SentenceModel model;
  model.transformer = directory;
  model.files = {"modules.json"};
  for (const json& module : modules) {
    const std::string type = module.is_object() ? text(module, "type") : "";
    const std::string folder = module.is_object() ? folder_of(path, module) : "";
    const std::string inside = folder.empty() ? directory : directory + "/" + folder;
    if (!folder.empty()) model.files.insert(folder.substr(0, folder.find('/')));
    if (type.ends_with(".Transformer")) {
      model.transformer = inside;
    } else if (type.ends_with(".Pooling")) {
      read_pooling(inside + "/config.json", model);
    } else if (type.ends_with(".Normalize")) {
      model.normalise = true;
    } else {
      model.warnings.push_back(path + ": module " +
                               (type.empty() ? "without a type" : printable(type)) +
                               " is not supported, so the file does not say how to embed a text");
      model.pooling.clear();
      return model;
    }
  }
  using Read = void (*)(const std::string&, SentenceModel&);
  const std::pair<const char*, Read> others[] = {
      {"sentence_bert_config.json", read_lengths},
      {"config_sentence_transformers.json", read_prompts}};
  for (const auto& [name, read] : others) {
    // The lengths are the transformer's, whose folder may be another one.
    for (const std::string& place : {model.transformer, directory}) {
      if (!file_exists(place + "/" + name)) continue;
      read(place + "/" + name, model);
      model.files.insert(name);
      break;
    }
  }
  return model;
}

}  // namespace oxbow::convert
