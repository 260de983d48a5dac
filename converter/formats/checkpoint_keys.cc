// config.json of a checkpoint: its keys, with typed access.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "converter/formats/checkpoint.h"
#include "converter/formats/checkpoint_files.h"
#include "host/errors.h"
#include "host/json_file.h"
#include "host/number_text.h"

namespace oxbow::convert {
namespace {

/// The key of an object that stands for a number JSON has none for.
constexpr const char* kFloat = "__float__";

/// Python writes Infinity, which is no JSON, or newer versions an object; here it becomes the object.
std::string with_infinities(const std::string& text) {
  constexpr std::string_view kWord = "Infinity";
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') out += text[i++];
    if (i < text.size() && text[i] == '"') in_string = !in_string;
    if (!in_string && text.compare(i, kWord.size(), kWord) == 0) {
      out += std::string("{\"") + kFloat + "\": \"Infinity\"}";
      i += kWord.size() - 1;
    } else if (i < text.size()) {
      out += text[i];
    }
  }
  return out;
}

bool is_token(const nlohmann::json& value) {
  return value.is_number_unsigned() && value.get<uint64_t>() <= INT32_MAX;
}

}  // namespace

void Checkpoint::read_config() {
  config_text_ = read_file(config_path_);
  config_ = parse_json(config_path_, with_infinities(config_text_));
  if (!config_.is_object()) throw InputError(config_path_ + " is not a JSON object");
  read_model_type();
}

const nlohmann::json* Checkpoint::find(const std::string& name) const {
  const nlohmann::json* object = &config_;
  size_t first = 0;
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', first)) {
    const auto inner = object->find(name.substr(first, dot - first));
    if (inner == object->end() || !inner->is_object()) return nullptr;
    object = &*inner;
    first = dot + 1;
  }
  const auto place = object->find(name.substr(first));
  return place == object->end() ? nullptr : &*place;
}

const nlohmann::json* Checkpoint::key(const std::string& name) const {
  used_keys_.insert(name);
  const nlohmann::json* value = find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void Checkpoint::fail_key(const std::string& name, const std::string& expected) const {
  const nlohmann::json* value = find(name);
  const std::string problem =
      (value == nullptr ? "key " + name + " is missing"
                        : name + " is " + printable(value->dump(-1, ' ', true), 80)) +
      ", expected " + expected;
  if (collects_) failed_keys_.insert(name);
  add_problem(problem);
}

void Checkpoint::add_problem(const std::string& problem) const {
  if (!collects_) throw KeyError(config_path_ + ": " + problem);
  if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end()) {
    problems_.push_back(problem);
  }
}

void Checkpoint::refuse(const std::string& problem) const {
  contradicts_ = collects_;
  // What follows from a value that stands in for a wrong one is no problem of the file.
  const bool follows =
      std::any_of(failed_keys_.begin(), failed_keys_.end(),
                  [&](const std::string& key) { return problem.find(key) != std::string::npos; });
  if (!follows) add_problem(problem);
}

void Checkpoint::check_can_build() const {
  if (contradicts_) throw_problems();
}

bool Checkpoint::has_key(const std::string& name) const { return find(name) != nullptr; }

bool Checkpoint::has_value(const std::string& name) const { return key(name) != nullptr; }

uint32_t Checkpoint::size(const std::string& name, uint32_t min, uint32_t max) const {
  const nlohmann::json* value = key(name);
  if (value == nullptr || !value->is_number_unsigned() || value->get<uint64_t>() < min ||
      value->get<uint64_t>() > max) {
    fail_key(name, "an integer from " + std::to_string(min) + " to " + std::to_string(max));
    // Others may have to be smaller than this, or tables to have as many rows.
    return std::clamp<uint32_t>(4096, min, max);
  }
  return value->get<uint32_t>();
}

uint32_t Checkpoint::size(const std::string& name, uint32_t min, uint32_t max,
                          uint32_t fallback) const {
  return key(name) == nullptr ? fallback : size(name, min, max);
}

double Checkpoint::number(const std::string& name, double min, double max, double fallback) const {
  const nlohmann::json* value = key(name);
  if (value == nullptr) return fallback;
  if (!value->is_number() || !(value->get<double>() >= min && value->get<double>() <= max)) {
    fail_key(name, "a number from " + number_text(min) + " to " + number_text(max));
    return fallback;
  }
  return value->get<double>();
}

bool Checkpoint::flag(const std::string& name, bool fallback) const {
  const nlohmann::json* value = key(name);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  fail_key(name, "true or false");
  return fallback;
}

std::string Checkpoint::choice(const std::string& name, const std::string& fallback,
                               const std::vector<std::string>& choices) const {
  const nlohmann::json* value = key(name);
  if (value == nullptr) return fallback;
  std::string list;
  for (const std::string& choice : choices) {
    if (value->is_string() && value->get_ref<const std::string&>() == choice) return choice;
    list += (list.empty() ? "" : ", ") + choice;
  }
  fail_key(name, choices.size() == 1 ? list : "one of: " + list);
  return choices.front();
}

bool Checkpoint::is_word(const std::string& name, const std::string& word) const {
  const nlohmann::json* value = key(name);
  return value != nullptr && value->is_string() && value->get_ref<const std::string&>() == word;
}

std::vector<uint32_t> Checkpoint::sizes(const std::string& name, uint32_t min, uint32_t max) const {
  const nlohmann::json* value = key(name);
  if (value == nullptr) return {};
  std::vector<uint32_t> out;
  bool good = value->is_array();
  for (size_t i = 0; good && i < value->size(); ++i) {
    const nlohmann::json& element = (*value)[i];
    good = element.is_number_unsigned() && element.get<uint64_t>() >= min &&
           element.get<uint64_t>() <= max;
    if (good) out.push_back(element.get<uint32_t>());
  }
  if (!good) {
    fail_key(name, "a list of integers from " + std::to_string(min) + " to " + std::to_string(max));
    return {};
  }
  return out;
}

std::vector<double> Checkpoint::numbers(const std::string& name) const {
  const nlohmann::json* value = key(name);
  if (value == nullptr) return {};
  std::vector<double> out;
  bool good = value->is_array();
  for (size_t i = 0; good && i < value->size(); ++i) {
    const nlohmann::json& element = (*value)[i];
    const bool infinite = element == nlohmann::json{{kFloat, "Infinity"}};
    good = infinite || element.is_number();
    if (good) {
      out.push_back(infinite ? std::numeric_limits<double>::infinity() : element.get<double>());
    }
  }
  if (good) return out;
  fail_key(name, "a list of numbers");
  return {};
}

std::vector<std::string> Checkpoint::texts(const std::string& name) const {
  const nlohmann::json* value = key(name);
  if (value == nullptr) return {};
  const auto is_text = [](const nlohmann::json& element) { return element.is_string(); };
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), is_text)) {
    fail_key(name, "a list of texts");
    return {};
  }
  return value->get<std::vector<std::string>>();
}

std::vector<bool> Checkpoint::flags(const std::string& name) const {
  const nlohmann::json* value = key(name);
  if (value == nullptr) return {};
  std::vector<bool> out;
  bool good = value->is_array();
  for (size_t i = 0; good && i < value->size(); ++i) {
    good = (*value)[i].is_boolean();
    if (good) out.push_back((*value)[i].get<bool>());
  }
  if (good) return out;
  fail_key(name, "a list of true and false");
  return {};
}

int32_t Checkpoint::token(const std::string& name, int32_t fallback) const {
  if (!has_key(name)) return fallback;
  const nlohmann::json* value = key(name);
  if (value == nullptr) return -1;
  const nlohmann::json& id = value->is_array() && !value->empty() ? (*value)[0] : *value;
  if (id.is_number_integer() && id.get<int64_t>() == -1) return -1;
  if (is_token(id)) return id.get<int32_t>();
  fail_key(name, "a token id or null");
  return fallback;
}

std::vector<std::vector<int32_t>> Checkpoint::token_lists(const std::string& name) const {
  const nlohmann::json* value = key(name);
  if (value == nullptr) return {};
  bool good = value->is_array();
  std::vector<std::vector<int32_t>> out;
  for (size_t i = 0; good && i < value->size(); ++i) {
    const nlohmann::json& list = (*value)[i];
    good = list.is_array() && std::all_of(list.begin(), list.end(), is_token);
    if (good) out.push_back(list.get<std::vector<int32_t>>());
  }
  if (good) return out;
  fail_key(name, "a list of lists of token ids");
  return {};
}

std::vector<uint32_t> Checkpoint::size_for_each(const std::string& name, uint32_t min, uint32_t max,
                                                size_t count) const {
  const nlohmann::json* value = key(name);
  if (value == nullptr || !value->is_array()) {
    return std::vector<uint32_t>(count, size(name, min, max));
  }
  std::vector<uint32_t> out = sizes(name, min, max);
  if (out.size() == count) return out;
  fail_key(name, "one integer, or a list of " + std::to_string(count));
  return std::vector<uint32_t>(count, min);
}

std::vector<uint32_t> Checkpoint::size_or_sizes(const std::string& name, uint32_t min,
                                                uint32_t max) const {
  const nlohmann::json* value = key(name);
  if (value == nullptr || !value->is_array()) return {size(name, min, max)};
  const std::vector<uint32_t> out = sizes(name, min, max);
  return out.empty() && !value->empty() ? std::vector<uint32_t>{min} : out;
}

std::string Checkpoint::note(const std::string& name) const {
  const nlohmann::json* value = key(name);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

std::vector<std::string> Checkpoint::labels(uint32_t classes) const {
  if (!has_value("id2label")) return {};
  const nlohmann::json& names = *key("id2label");
  // What the original writes when nobody gave any names, whatever the number of classes.
  if (names == nlohmann::json{{"0", "LABEL_0"}, {"1", "LABEL_1"}} && classes != 2) {
    const std::string note =
        "config.json: id2label has only the names LABEL_0 and LABEL_1, so the " +
        std::to_string(classes) + " classes have numbers";
    if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
    return {};
  }
  std::vector<std::string> out;
  bool good = names.is_object() && names.size() == classes;
  for (uint32_t i = 0; good && i < classes; ++i) {
    const auto name = names.find(std::to_string(i));
    good = name != names.end() && name->is_string();
    if (good) out.push_back(name->get<std::string>());
  }
  if (!good) {
    fail_key("id2label", "a name for each class from 0 to " + std::to_string(classes - 1));
    return {};
  }
  return out;
}

void Checkpoint::require_object(const std::string& name) const {
  const nlohmann::json* value = find(name);
  if (value != nullptr && !value->is_null() && !value->is_object()) fail_key(name, "an object");
}

void Checkpoint::ignore_keys(const std::vector<std::string>& keys) const {
  used_keys_.insert(keys.begin(), keys.end());
}

}  // namespace oxbow::convert
