// tokenizer.json with byte-pair encodings of words of bytes.

#include <algorithm>

#include "converter/text/tokenizer/byte_bpe.h"
#include "converter/text/tokenizer/normal_steps.h"
#include "converter/text/tokenizer/tokenizer_json.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;
using Behaviour = schema::SplitBehaviour;

constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kDigit = R"(\p{N})";
// With the digits of a word between its two halves.
constexpr const char* kLlama3Before = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
constexpr const char* kLlama3Behind = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

class Reader {
 public:
  Reader(const std::string& path, const json& file, uint32_t tokens)
      : in_(path, file, tokens), tokens_(tokens) {
    out_.source = path;
  }

  ByteBpeVocabulary read() {
    read_model(in_.model());
    for (const json* part : in_.normalizers()) steps_.add(*part);
    for (const json* part : in_.pre_tokenizers()) read_split(*part);
    if (steps_.is_form()) {
      out_.form = steps_.form();
    } else {
      out_.steps = steps_.take();
    }
    // Words of bytes are cut inside of characters, where nothing tells what is malformed.
    out_.form.repairs = !out_.patterns.empty() && out_.patterns.back().of_bytes;
    if (!byte_level_) {
      in_.fail("the pre_tokenizer does not cut words of bytes, expected ByteLevel");
    }
    // Without one, tokens become text all the same.
    for (const json* decoder : in_.decoders()) {
      if (TokenizerJson::type(*decoder) == "ByteLevel") continue;
      in_.fail("the decoder " + TokenizerJson::type(*decoder) +
               " is not supported, expected ByteLevel");
    }
    out_.added = in_.added();
    check_added();
    TokenizerJson::Template around = in_.post_processor();
    out_.before = std::move(around.before);
    out_.after = std::move(around.after);
    out_.pair_between = std::move(around.pair_between);
    out_.pair_after = std::move(around.pair_after);
    name_split(out_);
    return std::move(out_);
  }

 private:
  void read_model(const json& model) {
    if (TokenizerJson::type(model) != "BPE" && !TokenizerJson::optional(model, "type").is_null()) {
      in_.fail("the model is of type " + TokenizerJson::type(model) + ", expected BPE");
    }
    if (const json& prefix = TokenizerJson::optional(model, "continuing_subword_prefix");
        !prefix.is_null() && prefix != "") {
      in_.fail("model.continuing_subword_prefix is " + TokenizerJson::shown(prefix) +
               ", which is not supported for words of bytes");
    }
    if (const json& suffix = TokenizerJson::optional(model, "end_of_word_suffix");
        !suffix.is_null()) {
      out_.suffix = in_.text(suffix, "model.end_of_word_suffix");
    }
    if (const json& dropout = TokenizerJson::optional(model, "dropout");
        !dropout.is_null() && dropout != 0.0) {
      in_.fail("model.dropout is " + TokenizerJson::shown(dropout) + ", which is not supported");
    }
    out_.tokens = read_vocabulary(out_.source, in_.member(model, "model.", "vocab"), tokens_);
    out_.whole_words = in_.flag(model, "ignore_merges", false);
    if (const json& unknown = TokenizerJson::optional(model, "unk_token"); !unknown.is_null()) {
      out_.unknown = in_.text(unknown, "model.unk_token");
    }
    for (const char* key : {"fuse_unk", "byte_fallback"}) {
      if (in_.flag(model, key, false) && !has_all_bytes()) {
        in_.fail(std::string("model.") + key +
                 " is true and bytes are missing in the vocabulary, " + "which is not supported");
      }
    }
    out_.merges = in_.merges();
  }

  bool has_all_bytes() const {
    std::string bytes;
    size_t count = 0;
    for (const std::string& token : out_.tokens) {
      count += bytes_of_printable(token, &bytes) && bytes.size() == 1;
    }
    return count == 256;
  }

  void read_split(const json& part) {
    if (TokenizerJson::type(part) != "ByteLevel") {
      out_.patterns.push_back(in_.cut(part));
      // Behind ByteLevel a character is a byte.
      out_.patterns.back().of_bytes = byte_level_;
      return;
    }
    if (byte_level_) in_.fail("the pre_tokenizer ByteLevel is there twice");
    byte_level_ = true;
    if (in_.flag(part, "add_prefix_space", true)) {
      if (!out_.patterns.empty()) {
        in_.fail("pre_tokenizer.add_prefix_space is true behind another, which is not supported");
      }
      steps_.add_before_text(" ");
    }
    if (in_.flag(part, "use_regex", true)) {
      out_.patterns.push_back({kGpt2Pattern, false, Behaviour::Isolated});
    }
  }

  /// Texts that are looked for in normalised text are looked for before: the same, when they stay as they are.
  void check_added() const {
    if (!steps_.changes_letters()) return;
    for (const AddedTokenSetting& token : out_.added) {
      // What is in lower case stays as it is.
      if (token.normalized && std::any_of(token.text.begin(), token.text.end(), [](char c) {
            return (c >= 'A' && c <= 'Z') || static_cast<uint8_t>(c) >= 0x80;
          })) {
        in_.fail("the added token '" + printable(token.text, 60) +
                 "' is looked for in text whose letters were changed, which is not supported");
      }
    }
  }

  TokenizerJson in_;
  NormalSteps steps_{in_};
  uint32_t tokens_;
  bool byte_level_ = false;
  ByteBpeVocabulary out_;
};

}  // namespace

void name_split(ByteBpeVocabulary& vocabulary) {
  std::vector<SplitPattern>& patterns = vocabulary.patterns;
  // These leave no text between their words.
  const auto is = [&](size_t place, const std::string& text) {
    return patterns[place].text == text && !patterns[place].literal && !patterns[place].of_bytes &&
           (patterns[place].behaviour == Behaviour::Isolated ||
            patterns[place].behaviour == Behaviour::DropBetween);
  };
  if (patterns.size() == 2 && is(0, kDigit) && patterns[0].behaviour == Behaviour::Isolated &&
      is(1, kGpt2Pattern)) {
    vocabulary.split = schema::WordSplit::Gpt2Digits;
    patterns.clear();
  }
  if (patterns.size() != 1) return;
  if (is(0, kGpt2Pattern)) {
    patterns.clear();
    return;
  }
  const std::pair<const char*, uint32_t> digits[] = {
      {kDigit, 1}, {R"(\p{N}{1,2})", 2}, {R"(\p{N}{1,3})", 3}, {R"(\p{N}+)", 0}};
  for (const auto& [numbers, count] : digits) {
    if (!is(0, std::string(kLlama3Before) + numbers + kLlama3Behind)) continue;
    vocabulary.split = schema::WordSplit::Llama3;
    vocabulary.max_digits = count;
    patterns.clear();
    return;
  }
}

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
