#include "converter/text/tokenizer/tokenizer_json.h"

#include <utility>

#include "host/errors.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;
using Behaviour = schema::SplitBehaviour;

// Sequences inside of each other.
constexpr int kMaxDepth = 8;
// Tokens around a text. A template may name a list of them again and again.
constexpr size_t kMaxTemplateTokens = 1024;

}  // namespace

TokenizerJson::TokenizerJson(std::string path, const json& file, uint32_t tokens)
    : path_(std::move(path)), file_(file), tokens_(tokens) {
  if (!file_.is_object()) fail("no JSON object");
}

void TokenizerJson::fail(const std::string& what) const { throw InputError(path_ + ": " + what); }

std::string TokenizerJson::shown(const json& value) {
  return printable(value.dump(-1, ' ', true), 100);
}

const json& TokenizerJson::optional(const json& object, const char* key) {
  static const json none;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? none : *found;
}

const json& TokenizerJson::member(const json& object, const std::string& where,
                                  const char* key) const {
  const json& value = optional(object, key);
  if (value.is_null()) fail(where + key + " is missing");
  return value;
}

std::string TokenizerJson::text(const json& value, const std::string& what) const {
  if (!value.is_string()) fail(what + " is " + shown(value) + ", expected a text");
  return value.get<std::string>();
}

bool TokenizerJson::flag(const json& object, const char* key, bool fallback) const {
  const json& value = optional(object, key);
  if (value.is_null()) return fallback;
  if (!value.is_boolean()) {
    fail(std::string(key) + " is " + shown(value) + ", expected true or false");
  }
  return value.get<bool>();
}

std::string TokenizerJson::prepend_scheme(const json& part) const {
  if (const json& scheme = optional(part, "prepend_scheme"); !scheme.is_null()) {
    return text(scheme, "prepend_scheme");
  }
  return flag(part, "add_prefix_space", true) ? "always" : "never";
}

std::string TokenizerJson::type(const json& value) {
  const json& name = optional(value, "type");
  return name.is_string() ? printable(name.get<std::string>(), 60) : shown(value);
}

void TokenizerJson::flatten(const json& part, const std::string& where, const char* list, int depth,
                            std::vector<const json*>& out) const {
  if (part.is_null()) return;
  if (type(part) != "Sequence") {
    out.push_back(&part);
    return;
  }
  if (depth == kMaxDepth) fail(where + ": sequences too deep inside of each other");
  const json& parts = member(part, where + ".", list);
  if (!parts.is_array()) fail(where + "." + list + " is not a list");
  for (const json& inner : parts) flatten(inner, where, list, depth + 1, out);
}

std::vector<const json*> TokenizerJson::normalizers() const {
  std::vector<const json*> out;
  flatten(optional(file_, "normalizer"), "normalizer", "normalizers", 0, out);
  return out;
}
std::vector<const json*> TokenizerJson::pre_tokenizers() const {
  // BERT's is two of the others.
  static const json kBert[] = {{{"type", "WhitespaceSplit"}},
                               {{"type", "Punctuation"}, {"behavior", "Isolated"}}};
  std::vector<const json*> parts, out;
  flatten(optional(file_, "pre_tokenizer"), "pre_tokenizer", "pretokenizers", 0, parts);
  for (const json* part : parts) {
    if (type(*part) == "BertPreTokenizer") {
      out.insert(out.end(), {&kBert[0], &kBert[1]});
    } else {
      out.push_back(part);
    }
  }
  return out;
}
std::vector<const json*> TokenizerJson::decoders() const {
  std::vector<const json*> out;
  flatten(optional(file_, "decoder"), "decoder", "decoders", 0, out);
  return out;
}

std::vector<std::pair<std::string, std::string>> TokenizerJson::merges() const {
  const json& list = member(model(), "model.", "merges");
  if (!list.is_array()) fail("model.merges is not a list");
  std::vector<std::pair<std::string, std::string>> out;
  for (const json& merge : list) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      out.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string both = merge.is_string() ? merge.get<std::string>() : "";
    const size_t space = both.find(' ');
    if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos) {
      fail("merge " + std::to_string(out.size() + 1) + " is " + shown(merge) +
           ", expected two tokens");
    }
    out.emplace_back(both.substr(0, space), both.substr(space + 1));
  }
  return out;
}

SplitPattern TokenizerJson::cut(const json& part) const {
  const std::string name = type(part);
  SplitPattern out;
  if (name == "Digits") {
    out.text = flag(part, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)";
    return out;
  }
  if (name == "Whitespace") {
    out.text = R"(\w+|[^\w\s]+)";
    out.behaviour = Behaviour::DropBetween;
    return out;
  }
  if (name == "WhitespaceSplit") {
    out.text = R"(\s+)";
    out.behaviour = Behaviour::DropHeld;
    return out;
  }
  if (name == "CharDelimiterSplit") {
    out.text = text(optional(part, "delimiter"), "pre_tokenizer.delimiter");
    out.literal = true;
    out.behaviour = Behaviour::DropHeld;
    return out;
  }
  if (name != "Split" && name != "Punctuation") {
    fail("the pre_tokenizer " + name + " is not supported here");
  }
  const bool inverted = flag(part, "invert", false);
  const json& behavior = optional(part, "behavior");
  const std::string how = name == "Punctuation" && behavior.is_null()
                              ? "Isolated"
                              : text(behavior, "pre_tokenizer.behavior");
  constexpr std::pair<const char*, Behaviour> kBehaviours[] = {
      {"Isolated", Behaviour::Isolated},
      {"MergedWithPrevious", Behaviour::WithPrevious},
      {"MergedWithNext", Behaviour::WithNext},
      {"Contiguous", Behaviour::Contiguous},
      {"Removed", Behaviour::DropHeld}};
  bool known = false;
  for (const auto& [given, behaviour] : kBehaviours) {
    if (how != given) continue;
    known = true;
    out.behaviour = behaviour;
  }
  // Without one side of it gone, what is held and what is between are the same for these two.
  if (inverted && out.behaviour == Behaviour::DropHeld) {
    out.behaviour = Behaviour::DropBetween;
  } else if (inverted && out.behaviour != Behaviour::Isolated) {
    known = false;
  }
  if (!known) {
    fail("pre_tokenizer.behavior is " + printable(how, 40) + (inverted ? " with invert" : "") +
         ", which is not supported");
  }
  if (name == "Punctuation") {
    out.text = punctuation_pattern();
    return out;
  }
  const json& pattern = optional(part, "pattern");
  out.literal = optional(pattern, "String").is_string();
  out.text = text(optional(pattern, out.literal ? "String" : "Regex"), "pre_tokenizer.pattern");
  return out;
}

std::vector<AddedTokenSetting> TokenizerJson::added() const {
  const json& list = optional(file_, "added_tokens");
  std::vector<AddedTokenSetting> out;
  if (list.is_null()) return out;
  if (!list.is_array()) fail("added_tokens is not a list");
  for (const json& entry : list) {
    AddedTokenSetting token;
    token.text = text(optional(entry, "content"), "content of an added token");
    const json& id = optional(entry, "id");
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= tokens_) {
      fail("added token '" + printable(token.text, 60) + "' has id " + shown(id) +
           ", expected a number below the " + std::to_string(tokens_) + " of the model");
    }
    token.id = id.get<uint32_t>();
    token.special = flag(entry, "special", false);
    token.strip_left = flag(entry, "lstrip", false);
    token.strip_right = flag(entry, "rstrip", false);
    token.single_word = flag(entry, "single_word", false);
    token.normalized = flag(entry, "normalized", !token.special);
    out.push_back(token);
  }
  return out;
}

uint32_t TokenizerJson::template_id(const json& id) const {
  if (!id.is_number_unsigned() || id.get<uint64_t>() >= tokens_) {
    fail("the template has the id " + shown(id) + ", expected a number below the " +
         std::to_string(tokens_) + " of the model");
  }
  return id.get<uint32_t>();
}

TokenizerJson::Template TokenizerJson::post_processor() const {
  Template out;
  const json& processor = optional(file_, "post_processor");
  if (!processor.is_null()) add_processor(processor, 0, out);
  return out;
}

void TokenizerJson::add_processor(const json& processor, int depth, Template& out) const {
  const std::string name = type(processor);
  if (name == "ByteLevel") return;  // It changes offsets only.
  if (name == "Sequence") {
    const json& list = member(processor, "post_processor.", "processors");
    if (!list.is_array()) fail("post_processor.processors is not a list");
    if (depth == kMaxDepth) fail("post_processor: sequences too deep inside of each other");
    for (const json& entry : list) add_processor(entry, depth + 1, out);
    return;
  }
  if (!out.before.empty() || !out.after.empty()) {
    fail("the post_processor adds tokens twice, which is not supported");
  }
  if (name == "RobertaProcessing" || name == "BertProcessing") {
    const uint32_t sep = pair_id(processor, "sep");
    out.before = {pair_id(processor, "cls")};
    out.after = out.pair_after = {sep};
    out.pair_between.assign(name == "RobertaProcessing" ? 2 : 1, sep);
  } else if (name == "TemplateProcessing") {
    read_single(processor, out);
    read_pair(processor, out);
  } else {
    fail("the post_processor " + name + " is not supported, expected TemplateProcessing");
  }
}

uint32_t TokenizerJson::pair_id(const json& processor, const char* key) const {
  const json& pair = member(processor, "post_processor.", key);
  if (!pair.is_array() || pair.size() != 2) {
    fail(std::string("post_processor.") + key + " is " + shown(pair) +
         ", expected a token and its id");
  }
  return template_id(pair[1]);
}

void TokenizerJson::Template::write(schema::TokenizerT& tokenizer) const {
  tokenizer.before = before;
  tokenizer.after = after;
  tokenizer.pair_between = pair_between;
  tokenizer.pair_after = pair_after;
}

std::vector<uint32_t> TokenizerJson::special_ids(const json& processor, const json& entry,
                                                 size_t& left) const {
  const std::string name =
      text(optional(optional(entry, "SpecialToken"), "id"), "a special token of the template");
  const json& ids = optional(optional(optional(processor, "special_tokens"), name.c_str()), "ids");
  if (!ids.is_array()) {
    fail("post_processor.special_tokens lacks '" + printable(name, 60) + "'");
  }
  if (ids.size() > left) {
    fail("the template has more than " + std::to_string(kMaxTemplateTokens) +
         " tokens, which is not supported");
  }
  left -= ids.size();
  std::vector<uint32_t> out;
  for (const json& id : ids) out.push_back(template_id(id));
  return out;
}

void TokenizerJson::read_single(const json& processor, Template& out) const {
  const json& single = member(processor, "post_processor.", "single");
  if (!single.is_array()) fail("post_processor.single is not a list");
  bool behind = false;
  size_t left = kMaxTemplateTokens;
  for (const json& entry : single) {
    if (const json& sequence = optional(entry, "Sequence"); !sequence.is_null()) {
      if (behind || optional(sequence, "id") != "A") fail("the template has more than one text");
      behind = true;
      continue;
    }
    for (const uint32_t id : special_ids(processor, entry, left)) {
      (behind ? out.after : out.before).push_back(id);
    }
  }
  if (!behind) fail("the template lacks the text");
}

/// Templates of pairs that do not begin as those of a text do are left out.
void TokenizerJson::read_pair(const json& processor, Template& out) const {
  const json& pair = optional(processor, "pair");
  if (!pair.is_array()) return;
  // Before the first text, between the two, and behind the second.
  std::vector<uint32_t> parts[3];
  size_t texts = 0, left = kMaxTemplateTokens;
  for (const json& entry : pair) {
    if (const json& sequence = optional(entry, "Sequence"); !sequence.is_null()) {
      if (texts == 2 || optional(sequence, "id") != (texts == 0 ? "A" : "B")) return;
      ++texts;
      continue;
    }
    for (const uint32_t id : special_ids(processor, entry, left)) parts[texts].push_back(id);
  }
  if (texts != 2 || parts[0] != out.before) return;
  out.pair_between = parts[1];
  out.pair_after = parts[2];
}

}  // namespace oxbow::convert
