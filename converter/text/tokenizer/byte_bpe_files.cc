// vocab.json and merges.txt, which is how GPT-2 and RoBERTa came.

#include <set>

#include "converter/text/tokenizer/byte_bpe.h"
#include "host/errors.h"
#include "host/io_file.h"
#include "host/json_file.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;

std::vector<std::pair<std::string, std::string>> read_merges(const std::string& path) {
  const std::string text = read_file(path);
  std::vector<std::pair<std::string, std::string>> merges;
  size_t line = 0;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string merge = text.substr(begin, end - begin);
    begin = end + 1;
    if (merge.ends_with('\r')) merge.pop_back();
    if (merge.starts_with("#version")) continue;
    if (merge.empty() && begin >= text.size()) break;
    const size_t space = merge.find(' ');
    if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos) {
      throw InputError(path + ": line " + std::to_string(line + 1) + " is '" +
                       printable(merge, 60) + "', expected two tokens with a space between them");
    }
    merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  return merges;
}

/// What the class of a tokenizer adds to its files.
class Class {
 public:
  Class(const TokenizerSettings& settings, ByteBpeVocabulary& out)
      : settings_(settings), out_(out), added_(settings.added) {
    for (size_t id = 0; id < out.tokens.size(); ++id) {
      if (!out.tokens[id].empty()) ids_.emplace(out.tokens[id], id);
    }
  }

  void complete() {
    std::string name = settings_.config.value("tokenizer_class", json()).is_string()
                           ? settings_.config["tokenizer_class"].get<std::string>()
                           : "GPT2Tokenizer";
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    const std::set<std::string> like_roberta = {"RobertaTokenizer", "BartTokenizer",
                                                "LongformerTokenizer", "LEDTokenizer"};
    if (settings_.flag("add_prefix_space", false)) {
      throw InputError("tokenizer_config.json: add_prefix_space is true, which is not supported");
    }
    if (name == "GPT2Tokenizer") {
      add_special("<|endoftext|>", false);
      if (settings_.flag("add_bos_token", false)) {
        out_.before = {id(named("bos_token", "<|endoftext|>"))};
      }
    } else if (like_roberta.contains(name)) {
      for (const char* text : {"<s>", "</s>", "<unk>", "<pad>"}) add_special(text, false);
      add_special("<mask>", true);
      out_.before = {id(named("cls_token", "<s>"))};
      out_.after = {id(named("sep_token", "</s>"))};
      out_.mask = named("mask_token", "<mask>");
    } else {
      throw InputError("tokenizer_config.json: tokenizer_class is '" + printable(name, 60) +
                       "', whose vocab.json is not supported; expected GPT2Tokenizer, "
                       "RobertaTokenizer or the like, or a tokenizer.json");
    }
    for (AddedTokenSetting& token : added_) {
      // The class knows it otherwise than the map of special tokens, which has texts only.
      if (!token.id) token.id = id(token.text);
      if (token.text == out_.mask && like_roberta.contains(name)) token.strip_left = true;
    }
    out_.added = std::move(added_);
  }

 private:
  std::string named(const std::string& key, const std::string& fallback) const {
    const auto found = settings_.named.find(key);
    return found == settings_.named.end() ? fallback : found->second;
  }

  uint32_t id(const std::string& text) const {
    if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
    for (const AddedTokenSetting& token : added_) {
      if (token.text == text && token.id) return *token.id;
    }
    throw InputError(out_.source + ": the special token '" + printable(text, 60) +
                     "' is not in the vocabulary");
  }

  /// A special token of the class, unless the files speak of it or the vocabulary lacks it.
  void add_special(const std::string& text, bool strip_left) {
    if (!ids_.contains(text)) return;
    for (const AddedTokenSetting& token : added_) {
      if (token.text == text) return;
    }
    AddedTokenSetting token;
    token.text = text;
    token.special = true;
    token.strip_left = strip_left;
    added_.push_back(token);
  }

  const TokenizerSettings& settings_;
  ByteBpeVocabulary& out_;
  std::vector<AddedTokenSetting> added_;
  std::map<std::string, uint32_t> ids_;
};

}  // namespace

std::vector<std::string> read_vocabulary(const std::string& source, const json& vocab,
                                         uint32_t tokens) {
  if (!vocab.is_object()) {
    throw InputError(source + ": the vocabulary is no JSON object of tokens and their ids");
  }
  std::vector<std::string> out;
  for (const auto& [text, id] : vocab.items()) {
    const std::string quoted = "token '" + printable(text, 60) + "'";
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= tokens) {
      throw InputError(source + ": " + quoted + " has id " + printable(id.dump(-1, ' ', true), 40) +
                       ", expected a number below the " + std::to_string(tokens) + " of the model");
    }
    const size_t place = id.get<size_t>();
    if (place >= out.size()) out.resize(place + 1);
    if (!out[place].empty()) {
      throw InputError(source + ": " + quoted + " and token '" + printable(out[place], 60) +
                       "' have the same id " + std::to_string(place));
    }
    out[place] = text;
  }
  return out;
}

std::unique_ptr<schema::TokenizerT> read_byte_bpe(const std::string& vocabulary_path,
                                                  const std::string& merges_path,
                                                  const TokenizerSettings& settings,
                                                  uint32_t tokens) {
  const json vocab = read_json(vocabulary_path);
  ByteBpeVocabulary out;
  out.source = vocabulary_path + " and merges.txt";
  out.tokens = read_vocabulary(vocabulary_path, vocab, tokens);
  out.merges = read_merges(merges_path);
  Class(settings, out).complete();
  return build_byte_bpe(std::move(out), tokens);
}

}  // namespace oxbow::convert
