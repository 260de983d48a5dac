#include "converter/text/tokenizer/pieces_json.h"

#include "converter/text/tokenizer/pieces_model.h"
#include "host/errors.h"
#include "runtime/text/sentencepiece.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;

const std::string kMark(kSpaceMark);

class Reader {
 public:
  Reader(const std::string& path, const json& file, uint32_t tokens)
      : in_(path, file, tokens), pieces_(in_, tokens) {}

  std::unique_ptr<schema::TokenizerT> read() {
    out_->kind = schema::TokenizerKind::Bpe;
    for (const json* part : in_.normalizers()) read_normalizer(*part);
    for (const json* part : in_.pre_tokenizers()) read_split(*part);
    if (!marks_spaces_) in_.fail("nothing marks spaces by U+2581, which is not supported here");
    read_model(in_.model());
    read_decoders();
    in_.post_processor().write(*out_);
    return std::move(out_);
  }

 private:
  void read_normalizer(const json& part) {
    const std::string name = TokenizerJson::type(part);
    if (name == "Prepend" && TokenizerJson::optional(part, "prepend") == kMark && !marks_spaces_) {
      out_->space_before_text = true;
    } else if (name == "Replace" &&
               TokenizerJson::optional(TokenizerJson::optional(part, "pattern"), "String") == " " &&
               TokenizerJson::optional(part, "content") == kMark) {
      marks_spaces_ = true;
    } else {
      in_.fail("the normalizer " + name + " " + TokenizerJson::shown(part) +
               " is not supported here; expected Prepend and Replace of spaces by U+2581");
    }
  }

  void read_split(const json& part) {
    const std::string name = TokenizerJson::type(part);
    if (name == "Split" && marks_spaces_ &&
        TokenizerJson::optional(TokenizerJson::optional(part, "pattern"), "String") == " ") {
      return;  // There are no spaces any more.
    }
    if (name != "Metaspace" || marks_spaces_ || out_->space_before_text) {
      in_.fail("the pre_tokenizer " + name + " is not supported here; expected Metaspace");
    }
    if (TokenizerJson::optional(part, "replacement") != kMark) {
      in_.fail("pre_tokenizer.replacement is not U+2581");
    }
    marks_spaces_ = true;
    splits_ = in_.flag(part, "split", true);
    const std::string scheme = in_.prepend_scheme(part);
    out_->space_before_text = scheme != "never";
    out_->space_unless_there = out_->space_before_text;
    out_->space_at_start_only = scheme == "first";
  }

  void read_model(const json& model) {
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (const json& value = TokenizerJson::optional(model, key);
          !value.is_null() && value != "") {
        in_.fail(std::string("model.") + key + " is " + TokenizerJson::shown(value) +
                 ", which is not supported");
      }
    }
    for (const char* key : {"ignore_merges", "dropout"}) {
      const json& value = TokenizerJson::optional(model, key);
      if (!value.is_null() && value != false && value != 0.0) {
        in_.fail(std::string("model.") + key + " is " + TokenizerJson::shown(value) +
                 ", which is not supported here");
      }
    }
    pieces_.read_vocabulary();
    pieces_.read_unknown(in_.text(in_.member(model, "model.", "unk_token"), "model.unk_token"),
                         *out_);
    const bool bytes = in_.flag(model, "byte_fallback", false);
    if (!bytes && !in_.flag(model, "fuse_unk", false)) {
      in_.fail("model.fuse_unk is false, which is not supported here");
    }
    if (bytes) pieces_.read_bytes(*out_);
    for (const AddedTokenSetting& token : in_.added()) {
      // Its text is normalised before it is looked for: no space is left in it.
      if (token.normalized && token.text.find(' ') != std::string::npos) {
        in_.fail("added token '" + printable(token.text, 60) +
                 "' is looked for in text without spaces");
      }
    }
    pieces_.read_added();
    // A word ends before each mark.
    pieces_.read_merges(splits_ ? kMark : "", "", "", *out_);
    pieces_.write(*out_);
  }

  void read_decoders() {
    bool drop = false;
    bool marks = false;
    for (const json* part : in_.decoders()) {
      const std::string name = TokenizerJson::type(*part);
      if (name == "Replace" &&
          TokenizerJson::optional(TokenizerJson::optional(*part, "pattern"), "String") == kMark &&
          TokenizerJson::optional(*part, "content") == " ") {
        marks = true;
      } else if (name == "ByteFallback" || name == "Fuse") {
        continue;
      } else if (name == "Strip" && TokenizerJson::optional(*part, "content") == " " &&
                 TokenizerJson::optional(*part, "start") == 1 &&
                 TokenizerJson::optional(*part, "stop") == 0) {
        drop = true;
      } else if (name == "Metaspace") {
        marks = true;
        drop = in_.prepend_scheme(*part) != "never";
      } else {
        in_.fail("the decoder " + name + " is not supported here");
      }
    }
    if (!marks) in_.fail("no decoder makes spaces of U+2581, which is not supported");
    if (drop != out_->space_before_text) out_->drop_first_space = drop;
  }

  TokenizerJson in_;
  PiecesModel pieces_;
  bool marks_spaces_ = false;
  bool splits_ = false;
  std::unique_ptr<schema::TokenizerT> out_ = std::make_unique<schema::TokenizerT>();
};

}  // namespace

bool is_pieces_json(const std::string& path, const json& tokenizer) {
  const TokenizerJson in(path, tokenizer, UINT32_MAX);
  const json& model = in.model();
  const auto off = [&](const char* key) {
    const json& value = TokenizerJson::optional(model, key);
    return value.is_null() || value == false || value == "";
  };
  const auto pattern_is = [](const json& part, const char* text) {
    return TokenizerJson::optional(TokenizerJson::optional(part, "pattern"), "String") == text;
  };
  if (!off("ignore_merges") || !off("continuing_subword_prefix") || !off("end_of_word_suffix") ||
      off("unk_token") || (off("byte_fallback") && off("fuse_unk"))) {
    return false;
  }
  bool marks = false;
  for (const json* part : in.normalizers()) {
    const std::string name = TokenizerJson::type(*part);
    marks |= name == "Replace";
    const bool known =
        (name == "Prepend" && TokenizerJson::optional(*part, "prepend") == kMark && !marks) ||
        (name == "Replace" && pattern_is(*part, " ") &&
         TokenizerJson::optional(*part, "content") == kMark);
    if (!known) return false;
  }
  for (const json* part : in.pre_tokenizers()) {
    const std::string name = TokenizerJson::type(*part);
    if (name == "Metaspace") {
      if (marks || TokenizerJson::optional(*part, "replacement") != kMark) return false;
      marks = true;
    } else if (name != "Split" || !marks || !pattern_is(*part, " ")) {
      return false;
    }
  }
  return marks;
}

std::unique_ptr<schema::TokenizerT> read_pieces_json(const std::string& path, const json& tokenizer,
                                                     uint32_t tokens) {
  return Reader(path, tokenizer, tokens).read();
}

}  // namespace oxbow::convert
