// tokenizer.json, the file of Hugging Face's tokenizers library.

#include "converter/text/tokenizer/byte_bpe.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;

constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// With the digits of a word between its two halves.
constexpr const char* kLlama3Before = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
constexpr const char* kLlama3Behind = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

class Reader {
 public:
  Reader(const std::string& path, const json& file, uint32_t tokens)
      : file_(file), tokens_(tokens) {
    out_.source = path;
  }

  ByteBpeVocabulary read() {
    if (!file_.is_object()) fail("no JSON object");
    read_model(member(file_, "", "model"));
    if (const json& normalizer = optional(file_, "normalizer"); !normalizer.is_null()) {
      fail("the normalizer " + type(normalizer) + " is not supported, expected none");
    }
    read_splits(optional(file_, "pre_tokenizer"));
    if (!cuts_words_ || !byte_level_) {
      fail("the pre_tokenizer does not cut words of bytes, expected ByteLevel");
    }
    if (const json& decoder = optional(file_, "decoder"); type(decoder) != "ByteLevel") {
      fail("the decoder " + type(decoder) + " is not supported, expected ByteLevel");
    }
    read_added(optional(file_, "added_tokens"));
    read_template(optional(file_, "post_processor"));
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(out_.source + ": " + what);
  }
  static std::string shown(const json& value) { return printable(value.dump(-1, ' ', true), 100); }

  static const json& optional(const json& object, const char* key) {
    static const json none;
    const auto found = object.is_object() ? object.find(key) : object.end();
    return found == object.end() ? none : *found;
  }
  const json& member(const json& object, const std::string& where, const char* key) const {
    const json& value = optional(object, key);
    if (value.is_null()) fail(where + key + " is missing");
    return value;
  }
  std::string text(const json& value, const std::string& what) const {
    if (!value.is_string()) fail(what + " is " + shown(value) + ", expected a text");
    return value.get<std::string>();
  }
  bool flag(const json& object, const char* key, bool fallback) const {
    const json& value = optional(object, key);
    if (value.is_null()) return fallback;
    if (!value.is_boolean())
      fail(std::string(key) + " is " + shown(value) + ", expected true or false");
    return value.get<bool>();
  }
  /// What a part of the file is, for messages too.
  static std::string type(const json& value) {
    const json& name = optional(value, "type");
    return name.is_string() ? printable(name.get<std::string>(), 60) : shown(value);
  }

  void read_model(const json& model) {
    if (type(model) != "BPE") fail("the model is of type " + type(model) + ", expected BPE");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (const json& value = optional(model, key); !value.is_null() && value != "") {
        fail(std::string("model.") + key + " is " + shown(value) + ", which is not supported");
      }
    }
    if (const json& dropout = optional(model, "dropout"); !dropout.is_null() && dropout != 0.0) {
      fail("model.dropout is " + shown(dropout) + ", which is not supported");
    }
    out_.tokens = read_vocabulary(out_.source, member(model, "model.", "vocab"), tokens_);
    out_.whole_words = flag(model, "ignore_merges", false);
    if (const json& unknown = optional(model, "unk_token"); !unknown.is_null()) {
      out_.unknown = text(unknown, "model.unk_token");
    }
    for (const char* key : {"fuse_unk", "byte_fallback"}) {
      if (flag(model, key, false) && !has_all_bytes()) {
        fail(std::string("model.") + key + " is true and bytes are missing in the vocabulary, " +
             "which is not supported");
      }
    }
    const json& merges = member(model, "model.", "merges");
    if (!merges.is_array()) fail("model.merges is not a list");
    for (const json& merge : merges) read_merge(merge);
  }

  bool has_all_bytes() const {
    std::string bytes;
    size_t count = 0;
    for (const std::string& token : out_.tokens) {
      count += bytes_of_printable(token, &bytes) && bytes.size() == 1;
    }
    return count == 256;
  }

  /// Two texts, or in older files one with a space between them.
  void read_merge(const json& merge) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      out_.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      return;
    }
    if (merge.is_string()) {
      const std::string both = merge.get<std::string>();
      const size_t space = both.find(' ');
      if (space != std::string::npos && both.find(' ', space + 1) == std::string::npos) {
        out_.merges.emplace_back(both.substr(0, space), both.substr(space + 1));
        return;
      }
    }
    fail("merge " + std::to_string(out_.merges.size() + 1) + " is " + shown(merge) +
         ", expected two tokens");
  }

  void read_splits(const json& splits) {
    if (type(splits) != "Sequence") {
      read_split(splits);
      return;
    }
    const json& list = member(splits, "pre_tokenizer.", "pretokenizers");
    if (!list.is_array()) fail("pre_tokenizer.pretokenizers is not a list");
    for (const json& split : list) read_split(split);
  }

  void read_split(const json& split) {
    if (byte_level_)
      fail("the pre_tokenizer " + type(split) + " behind ByteLevel is not supported");
    if (type(split) == "ByteLevel") {
      byte_level_ = true;
      if (flag(split, "add_prefix_space", true)) {
        fail("pre_tokenizer.add_prefix_space is true, which is not supported");
      }
      if (!flag(split, "use_regex", true)) return;
      if (cuts_words_) fail("the pre_tokenizer cuts words twice, which is not supported");
      cuts_words_ = true;
      if (digits_) out_.split = schema::WordSplit::Gpt2Digits;
      return;
    }
    if (type(split) == "Digits") {
      if (cuts_words_) fail("the pre_tokenizer Digits behind another is not supported");
      if (!flag(split, "individual_digits", false)) {
        fail("pre_tokenizer.individual_digits is false, which is not supported");
      }
      digits_ = true;
      return;
    }
    if (type(split) != "Split") {
      fail("the pre_tokenizer " + type(split) + " is not supported, expected Split and ByteLevel");
    }
    if (cuts_words_) fail("the pre_tokenizer cuts words twice, which is not supported");
    // The patterns leave no text out, so that what is between the words is nothing.
    const std::string behavior = text(optional(split, "behavior"), "pre_tokenizer.behavior");
    const bool inverted = flag(split, "invert", false);
    if (!(behavior == "Isolated" && !inverted) && !(behavior == "Removed" && inverted)) {
      fail("pre_tokenizer.behavior is " + printable(behavior, 40) + ", expected Isolated");
    }
    if (digits_) fail("the pre_tokenizer Digits before Split is not supported");
    read_pattern(
        text(optional(optional(split, "pattern"), "Regex"), "pre_tokenizer.pattern.Regex"));
    cuts_words_ = true;
  }

  void read_pattern(const std::string& pattern) {
    if (pattern == kGpt2Pattern) return;
    out_.split = schema::WordSplit::Llama3;
    const std::pair<const char*, uint32_t> digits[] = {
        {R"(\p{N})", 1}, {R"(\p{N}{1,2})", 2}, {R"(\p{N}{1,3})", 3}, {R"(\p{N}+)", 0}};
    for (const auto& [numbers, count] : digits) {
      if (pattern != std::string(kLlama3Before) + numbers + kLlama3Behind) continue;
      out_.max_digits = count;
      return;
    }
    fail("the pattern " + printable(pattern) +
         " is not supported, expected GPT-2's, Llama 3's or Qwen2's");
  }

  void read_added(const json& list) {
    if (list.is_null()) return;
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
      out_.added.push_back(token);
    }
  }

  uint32_t template_id(const json& id) const {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= tokens_) {
      fail("the template has the id " + shown(id) + ", expected a number below the " +
           std::to_string(tokens_) + " of the model");
    }
    return id.get<uint32_t>();
  }

  void read_template(const json& processor) {
    const std::string name = processor.is_null() ? "ByteLevel" : type(processor);
    if (name == "ByteLevel") return;  // It changes offsets only.
    if (name == "Sequence") {
      const json& list = member(processor, "post_processor.", "processors");
      if (!list.is_array()) fail("post_processor.processors is not a list");
      for (const json& entry : list) {
        if (type(entry) == "Sequence") fail("a Sequence in a Sequence is not supported");
        read_template(entry);
      }
      return;
    }
    if (!out_.before.empty() || !out_.after.empty()) {
      fail("the post_processor adds tokens twice, which is not supported");
    }
    if (name == "RobertaProcessing" || name == "BertProcessing") {
      out_.before = {pair_id(processor, "cls")};
      out_.after = {pair_id(processor, "sep")};
    } else if (name == "TemplateProcessing") {
      read_single(processor);
    } else {
      fail("the post_processor " + name + " is not supported, expected TemplateProcessing");
    }
  }

  uint32_t pair_id(const json& processor, const char* key) const {
    const json& pair = member(processor, "post_processor.", key);
    if (!pair.is_array() || pair.size() != 2) {
      fail(std::string("post_processor.") + key + " is " + shown(pair) +
           ", expected a token and its id");
    }
    return template_id(pair[1]);
  }

  void read_single(const json& processor) {
    const json& single = member(processor, "post_processor.", "single");
    if (!single.is_array()) fail("post_processor.single is not a list");
    const json& special = optional(processor, "special_tokens");
    bool behind = false;
    for (const json& entry : single) {
      if (const json& sequence = optional(entry, "Sequence"); !sequence.is_null()) {
        if (behind || optional(sequence, "id") != "A") fail("the template has more than one text");
        behind = true;
        continue;
      }
      const std::string name =
          text(optional(optional(entry, "SpecialToken"), "id"), "a special token of the template");
      const json& ids = optional(optional(special, name.c_str()), "ids");
      if (!ids.is_array()) {
        fail("post_processor.special_tokens lacks '" + printable(name, 60) + "'");
      }
      for (const json& id : ids) (behind ? out_.after : out_.before).push_back(template_id(id));
    }
    if (!behind) fail("the template lacks the text");
  }

  const json& file_;
  uint32_t tokens_;
  bool cuts_words_ = false;
  bool digits_ = false;
  bool byte_level_ = false;
  ByteBpeVocabulary out_;
};

}  // namespace

std::unique_ptr<schema::TokenizerT> read_byte_bpe_json(const std::string& path,
                                                       const json& tokenizer,
                                                       const TokenizerSettings& settings,
                                                       uint32_t tokens) {
  ByteBpeVocabulary out = Reader(path, tokenizer, tokens).read();
  if (const auto mask = settings.named.find("mask_token"); mask != settings.named.end()) {
    out.mask = mask->second;
  }
  return build_byte_bpe(std::move(out), tokens);
}

}  // namespace oxbow::convert
