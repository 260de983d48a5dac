#include "converter/text/tokenizer/wordpiece_json.h"

#include <algorithm>

#include "host/errors.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;

/// A part of the file and the way to it, for messages.
class Part {
 public:
  Part(std::string place, const json& value) : place_(std::move(place)), value_(value) {}

  [[noreturn]] void fail(const std::string& expected) const {
    // What lies deep is not shown, however deep it lies.
    const std::string given =
        value_.is_structured() ? value_.type_name() : value_.dump(-1, ' ', true);
    throw InputError(place_ + " is " + printable(given, 60) + ", expected " + expected);
  }

  Part at(const std::string& key) const {
    static const json missing;
    const auto found = value_.is_object() ? value_.find(key) : value_.end();
    const bool is_there = value_.is_object() && found != value_.end();
    return {place_ + "." + printable(key, 40), is_there ? *found : missing};
  }
  bool is_null() const { return value_.is_null(); }

  std::string text() const {
    if (!value_.is_string()) fail("a text");
    return value_.get<std::string>();
  }
  bool flag() const {
    if (!value_.is_boolean()) fail("true or false");
    return value_.get<bool>();
  }
  bool flag(bool fallback) const { return is_null() ? fallback : flag(); }
  uint32_t number(uint32_t limit) const {
    if (!value_.is_number_unsigned() || value_.get<uint64_t>() >= limit) {
      fail("a number below " + std::to_string(limit));
    }
    return value_.get<uint32_t>();
  }
  std::vector<Part> list() const {
    if (!value_.is_array()) fail("a list");
    std::vector<Part> parts;
    for (size_t i = 0; i < value_.size(); ++i) {
      parts.push_back({place_ + "[" + std::to_string(i) + "]", value_[i]});
    }
    return parts;
  }
  /// The only kind of such a part that is supported.
  void require_type(const std::string& type) const {
    if (type_is(type)) return;
    (value_.is_object() && value_.contains("type") ? at("type") : *this).fail(type);
  }
  bool type_is(const std::string& type) const {
    return value_.is_object() && value_.contains("type") && value_["type"] == type;
  }
  const json& value() const { return value_; }

 private:
  std::string place_;
  const json& value_;
};

void read_vocabulary(const Part& vocab, uint32_t vocabulary, WordPieceParts* parts) {
  if (!vocab.value().is_object()) vocab.fail("an object");
  if (vocab.value().size() > vocabulary) {
    throw InputError(parts->path + ": " + std::to_string(vocab.value().size()) +
                     " tokens for a model of " + std::to_string(vocabulary));
  }
  parts->tokens.resize(vocab.value().size());
  const auto count = static_cast<uint32_t>(parts->tokens.size());
  for (const auto& [text, id] : vocab.value().items()) {
    const Part entry = vocab.at(text);
    if (text.empty()) throw InputError(parts->path + ": a token is empty");
    // As many ids as tokens and none twice: none is missing either.
    std::string& place = parts->tokens[entry.number(count)];
    if (!place.empty()) entry.fail("an id that '" + printable(place, 40) + "' does not have");
    place = text;
  }
}

void read_added(const Part& list, uint32_t vocabulary, WordPieceParts* parts) {
  if (list.is_null()) return;
  for (const Part& entry : list.list()) {
    AddedTokenSetting token;
    token.text = entry.at("content").text();
    token.id = entry.at("id").number(vocabulary);
    token.special = entry.at("special").flag(false);
    token.single_word = entry.at("single_word").flag(false);
    token.normalized = entry.at("normalized").flag(!token.special);
    parts->added.push_back(token);
  }
  std::sort(parts->added.begin(), parts->added.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
}

/// The tokens that a template adds, each a list of one.
std::string special_token(const Part& processor, const Part& item) {
  const std::string name = item.at("SpecialToken").at("id").text();
  const std::vector<Part> tokens = processor.at("special_tokens").at(name).at("tokens").list();
  if (tokens.size() != 1) {
    processor.at("special_tokens").at(name).at("tokens").fail("one token");
  }
  return tokens[0].text();
}

/// Templates of pairs that do not begin as those of a text do are left out.
void read_pair(const Part& processor, WordPieceParts* parts) {
  if (!processor.at("pair").value().is_array()) return;
  // Before the first text, between the two, and behind the second.
  std::vector<std::string> around[3];
  size_t texts = 0;
  for (const Part& item : processor.at("pair").list()) {
    if (item.at("Sequence").is_null()) {
      around[texts].push_back(special_token(processor, item));
      continue;
    }
    if (texts == 2 || item.at("Sequence").at("id").value() != (texts == 0 ? "A" : "B")) return;
    ++texts;
  }
  if (texts != 2 || around[0] != parts->before) return;
  parts->pair_between = around[1];
  parts->pair_after = around[2];
}

void read_template(const Part& processor, WordPieceParts* parts) {
  if (processor.is_null()) return;
  if (processor.type_is("BertProcessing")) {
    for (const auto& [key, place] : {std::pair("cls", &parts->before), {"sep", &parts->after}}) {
      const std::vector<Part> token = processor.at(key).list();
      if (token.size() != 2) processor.at(key).fail("a token and its id");
      place->push_back(token[0].text());
    }
    parts->pair_between = parts->pair_after = parts->after;
    return;
  }
  if (!processor.type_is("TemplateProcessing")) {
    processor.require_type("BertProcessing or TemplateProcessing");
  }
  bool behind = false;
  for (const Part& item : processor.at("single").list()) {
    if (!item.at("Sequence").is_null()) {
      if (behind) item.fail("the text only once");
      behind = true;
    } else {
      (behind ? parts->after : parts->before).push_back(special_token(processor, item));
    }
  }
  if (!behind) processor.at("single").fail("a Sequence in it");
  read_pair(processor, parts);
}

}  // namespace

bool is_bert_json(const json& file) {
  const Part root("", file);
  const auto cleans = root.at("normalizer").at("clean_text");
  return root.at("normalizer").type_is("BertNormalizer") && cleans.value() == true &&
         root.at("pre_tokenizer").type_is("BertPreTokenizer") &&
         root.at("decoder").type_is("WordPiece");
}

WordPieceParts parse_wordpiece_json(const std::string& path, const json& file,
                                    uint32_t vocabulary) {
  const Part root(path + ": tokenizer", file);
  WordPieceParts parts;
  parts.path = path;

  const Part model = root.at("model");
  model.require_type("WordPiece");
  read_vocabulary(model.at("vocab"), vocabulary, &parts);
  parts.unknown = model.at("unk_token").text();
  parts.prefix = model.at("continuing_subword_prefix").text();
  // The runtime has the same bound.
  parts.max_word_characters = model.at("max_input_chars_per_word").number(1001);
  read_added(root.at("added_tokens"), vocabulary, &parts);

  const Part normalizer = root.at("normalizer");
  normalizer.require_type("BertNormalizer");
  if (!normalizer.at("clean_text").flag()) normalizer.at("clean_text").fail("true");
  parts.normalizer.lower_case = normalizer.at("lowercase").flag();
  parts.normalizer.strip_accents = normalizer.at("strip_accents").flag(parts.normalizer.lower_case);
  parts.normalizer.split_chinese = normalizer.at("handle_chinese_chars").flag();
  root.at("pre_tokenizer").require_type("BertPreTokenizer");
  read_template(root.at("post_processor"), &parts);

  const Part decoder = root.at("decoder");
  decoder.require_type("WordPiece");
  if (decoder.at("prefix").text() != parts.prefix) {
    decoder.at("prefix").fail("that of the model, " + printable(parts.prefix, 40));
  }
  parts.tidy = decoder.at("cleanup").flag();
  return parts;
}

}  // namespace oxbow::convert
