#include "converter/text/tokenizer/words_json.h"

#include <algorithm>

#include "converter/text/tokenizer/normal_steps.h"
#include "converter/text/tokenizer/pieces_model.h"
#include "converter/text/tokenizer/tokenizer_json.h"
#include "host/errors.h"
#include "runtime/text/sentencepiece.h"
#include "runtime/text/utf8.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;
using schema::TokenDecoding;
using schema::WordMark;

const std::string kMark(kSpaceMark);
/// The runtime's own limit of the characters of a word that is cut into pieces.
constexpr uint32_t kMaxWordCharacters = 1000;

class Reader {
 public:
  Reader(const std::string& path, const json& file, const std::string& mask, uint32_t tokens)
      : in_(path, file, tokens), steps_(in_), pieces_(in_, tokens), mask_(mask) {}

  std::unique_ptr<schema::TokenizerT> read() {
    out_->words = true;
    for (const json* part : in_.normalizers()) steps_.add(*part);
    read_splits();
    const json& type = TokenizerJson::optional(in_.model(), "type");
    if (type == "Unigram") {
      read_unigram();
    } else if (type == "WordLevel") {
      read_word_level();
    } else if (type == "WordPiece") {
      read_wordpiece();
    } else {
      read_bpe();
    }
    read_decoders();
    check_added();
    in_.post_processor().write(*out_);
    out_->steps = steps_.take();
    if (!patterns_.empty()) write_patterns(in_.path(), patterns_, *out_);
    return std::move(out_);
  }

 private:
  std::string text_or(const char* key, const std::string& fallback) const {
    const json& value = TokenizerJson::optional(in_.model(), key);
    return value.is_null() ? fallback : in_.text(value, std::string("model.") + key);
  }

  void read_splits() {
    const std::vector<const json*> parts = in_.pre_tokenizers();
    for (size_t i = 0; i < parts.size(); ++i) {
      if (TokenizerJson::type(*parts[i]) == "Metaspace") {
        read_metaspace(*parts[i], i == 0, i + 1 == parts.size());
      } else {
        patterns_.push_back(in_.cut(*parts[i]));
      }
    }
  }

  /// Spaces become marks, one is put before text that has none, and words begin with them.
  void read_metaspace(const json& part, bool first, bool last) {
    if (TokenizerJson::optional(part, "replacement") != kMark) {
      in_.fail("pre_tokenizer.replacement is not U+2581, which is not supported");
    }
    const std::string scheme = in_.prepend_scheme(part);
    const bool splits = in_.flag(part, "split", true);
    if (last) {
      out_->mark_spaces = true;
      out_->word_mark = scheme == "always"  ? WordMark::Every
                        : scheme == "first" ? WordMark::First
                                            : WordMark::None;
      if (splits)
        patterns_.push_back({"[ " + kMark + "]", false, schema::SplitBehaviour::WithNext});
      // Without cuts of its own, what another left begins with a mark, or all of the text does.
      return;
    }
    if (!first || scheme == "first") {
      in_.fail("the pre_tokenizer Metaspace between others is not supported");
    }
    if (scheme == "always") steps_.add_before_text(kMark);
    steps_.replace({" ", true}, kMark);
    if (splits) patterns_.push_back({kMark, true, schema::SplitBehaviour::WithNext});
  }

  void read_unigram() {
    out_->kind = schema::TokenizerKind::Unigram;
    pieces_.read_scores();
    const json& unknown = TokenizerJson::optional(in_.model(), "unk_id");
    if (!unknown.is_number_unsigned() || unknown.get<uint64_t>() >= pieces_.texts().size()) {
      in_.fail("model.unk_id is " + TokenizerJson::shown(unknown) + ", expected a token");
    }
    pieces_.set_unknown(unknown.get<uint32_t>(), *out_);
    if (in_.flag(in_.model(), "byte_fallback", false)) pieces_.read_bytes(*out_);
    pieces_.read_added();
    pieces_.look_up_all();
    pieces_.write(*out_);
  }

  void read_word_level() {
    read_whole_words("<unk>");
    out_->whole_words = true;
    uint32_t longest = 1;
    for (const std::string& text : pieces_.texts()) {
      longest = std::max(longest, static_cast<uint32_t>(std::min<size_t>(text.size(), UINT32_MAX)));
    }
    // A longer word than any token is unknown.
    if (longest > kMaxWordCharacters) {
      in_.fail("a token of " + std::to_string(longest) + " bytes is longer than is supported");
    }
    out_->max_word_characters = longest;
  }

  void read_wordpiece() {
    read_whole_words("[UNK]");
    out_->inner_prefix = text_or("continuing_subword_prefix", "##");
    const json& most = TokenizerJson::optional(in_.model(), "max_input_chars_per_word");
    out_->max_word_characters = 100;
    if (!most.is_null()) {
      if (!most.is_number_unsigned() || most.get<uint64_t>() == 0 ||
          most.get<uint64_t>() > kMaxWordCharacters) {
        in_.fail("model.max_input_chars_per_word is " + TokenizerJson::shown(most) +
                 ", expected 1 to " + std::to_string(kMaxWordCharacters));
      }
      out_->max_word_characters = most.get<uint32_t>();
    }
  }

  void read_whole_words(const std::string& usual_unknown) {
    out_->kind = schema::TokenizerKind::WordPiece;
    // Nothing here knows a mark of its own.
    if (out_->mark_spaces) in_.fail("the pre_tokenizer Metaspace is not supported for this model");
    pieces_.read_vocabulary();
    pieces_.read_unknown(text_or("unk_token", usual_unknown), *out_);
    pieces_.read_added();
    pieces_.look_up_all();
    pieces_.write(*out_);
  }

  void read_bpe() {
    out_->kind = schema::TokenizerKind::Bpe;
    const json& dropout = TokenizerJson::optional(in_.model(), "dropout");
    if (!dropout.is_null() && dropout != 0.0) {
      in_.fail("model.dropout is " + TokenizerJson::shown(dropout) + ", which is not supported");
    }
    out_->whole_words = in_.flag(in_.model(), "ignore_merges", false);
    out_->inner_prefix = text_or("continuing_subword_prefix", "");
    out_->word_suffix = text_or("end_of_word_suffix", "");
    pieces_.read_vocabulary();
    if (const json& unknown = TokenizerJson::optional(in_.model(), "unk_token");
        !unknown.is_null()) {
      pieces_.read_unknown(in_.text(unknown, "model.unk_token"), *out_);
    }
    out_->unknown_apart = !in_.flag(in_.model(), "fuse_unk", false);
    if (in_.flag(in_.model(), "byte_fallback", false)) pieces_.read_bytes(*out_);
    pieces_.read_added();
    pieces_.read_merges("", out_->inner_prefix, out_->word_suffix, *out_);
    pieces_.write(*out_);
  }

  void read_decoders() {
    const std::vector<const json*> parts = in_.decoders();
    const bool pieces = out_->kind != schema::TokenizerKind::WordPiece;
    out_->decoding = parts.empty() ? TokenDecoding::Spaced : TokenDecoding::Plain;
    bool drops = false;
    for (const json* part : parts) {
      const std::string name = TokenizerJson::type(*part);
      if (name == "WordPiece" && !pieces) {
        const std::string prefix =
            in_.text(TokenizerJson::optional(*part, "prefix"), "decoder.prefix");
        if (prefix != out_->inner_prefix && !out_->whole_words) {
          in_.fail("decoder.prefix is not that of the model, which is not supported");
        }
        out_->inner_prefix = prefix;
        out_->tidy = in_.flag(*part, "cleanup", true);
        out_->decoding = TokenDecoding::Kind;
      } else if (name == "BPEDecoder" && pieces) {
        const std::string suffix =
            in_.text(TokenizerJson::optional(*part, "suffix"), "decoder.suffix");
        if (suffix != out_->word_suffix) {
          in_.fail("decoder.suffix is not that of the model, which is not supported");
        }
        out_->decoding = TokenDecoding::WordEnds;
      } else if (name == "Metaspace" && pieces) {
        out_->decoding = TokenDecoding::Kind;
        drops = in_.prepend_scheme(*part) != "never";
      } else if (name == "Replace" && pieces &&
                 TokenizerJson::optional(TokenizerJson::optional(*part, "pattern"), "String") ==
                     kMark &&
                 TokenizerJson::optional(*part, "content") == " ") {
        out_->decoding = TokenDecoding::Kind;
      } else if (name == "Strip" && TokenizerJson::optional(*part, "content") == " " &&
                 TokenizerJson::optional(*part, "start") == 1 &&
                 TokenizerJson::optional(*part, "stop") == 0) {
        drops = true;
      } else if (name != "Fuse" && name != "ByteFallback") {
        in_.fail("the decoder " + name + " is not supported here");
      }
    }
    out_->drop_first_space = drops;
  }

  /// Texts that are looked for in normalised text are looked for before: the same, when they stay as they are.
  void check_added() {
    for (const AddedTokenSetting& token : in_.added()) {
      if (token.text == mask_ && token.id) out_->mask_token = static_cast<int32_t>(*token.id);
      if (!token.normalized || !steps_.changes_letters()) continue;
      if (std::any_of(token.text.begin(), token.text.end(), [](char c) {
            return (c >= 'A' && c <= 'Z') || static_cast<uint8_t>(c) >= 0x80;
          })) {
        in_.fail("the added token '" + printable(token.text, 60) +
                 "' is looked for in text whose letters were changed, which is not supported");
      }
    }
  }

  TokenizerJson in_;
  NormalSteps steps_;
  PiecesModel pieces_;
  std::string mask_;
  std::vector<SplitPattern> patterns_;
  std::unique_ptr<schema::TokenizerT> out_ = std::make_unique<schema::TokenizerT>();
};

}  // namespace

std::unique_ptr<schema::TokenizerT> read_words_json(const std::string& path, const json& tokenizer,
                                                    const std::string& mask, uint32_t tokens) {
  return Reader(path, tokenizer, mask, tokens).read();
}

}  // namespace oxbow::convert
