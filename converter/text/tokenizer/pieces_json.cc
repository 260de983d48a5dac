#include "converter/text/tokenizer/pieces_json.h"

#include <cstdio>
#include <set>
#include <unordered_map>

#include "converter/text/tokenizer/byte_bpe.h"
#include "converter/text/tokenizer/merge_table.h"
#include "converter/text/tokenizer/piece_tables.h"
#include "converter/text/tokenizer/tokenizer_json.h"
#include "converter/text/tokenizer/unicode.h"
#include "host/errors.h"
#include "runtime/text/sentencepiece.h"
#include "runtime/text/tables/char_classes.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;
using schema::TokenRole;

const std::string kMark(kSpaceMark);

class Reader {
 public:
  Reader(const std::string& path, const json& file, uint32_t tokens)
      : in_(path, file, tokens), tokens_(tokens) {}

  std::unique_ptr<schema::TokenizerT> read() {
    out_->kind = schema::TokenizerKind::Bpe;
    for (const json* part : in_.normalizers()) read_normalizer(*part);
    for (const json* part : in_.pre_tokenizers()) read_split(*part);
    if (!marks_spaces_) in_.fail("nothing marks spaces by U+2581, which is not supported here");
    read_model(in_.model());
    read_decoders();
    const TokenizerJson::Template around = in_.post_processor();
    out_->before = around.before;
    out_->after = around.after;
    return std::move(out_);
  }

 private:
  static std::string quoted(const std::string& text) { return "'" + printable(text, 60) + "'"; }

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
    const std::string scheme = scheme_of(part);
    out_->space_before_text = scheme != "never";
    out_->space_unless_there = out_->space_before_text;
    out_->space_at_start_only = scheme == "first";
  }

  /// Older files say whether a space goes before text, newer ones when.
  std::string scheme_of(const json& part) const {
    if (const json& scheme = TokenizerJson::optional(part, "prepend_scheme"); !scheme.is_null()) {
      return in_.text(scheme, "prepend_scheme");
    }
    return in_.flag(part, "add_prefix_space", true) ? "always" : "never";
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
    texts_ = read_vocabulary(in_.path(), in_.member(model, "model.", "vocab"), tokens_);
    for (uint32_t id = 0; id < texts_.size(); ++id) {
      if (!texts_[id].empty()) ids_[texts_[id]] = id;
    }
    tables_.tokens.resize(texts_.size());
    for (const auto& [text, id] : ids_) tables_.tokens[id] = {text, TokenRole::Plain, 0};
    read_unknown(model);
    read_added();
    read_merges();
    tables_.write(*out_, false);
    out_->classes =
        std::make_unique<schema::CharClassesT>(build_char_classes(std::vector<ClassRule>{
            {CodePoints::white_space(), kSpace}, {CodePoints::word_characters(), kWordCharacter}}));
  }

  void read_unknown(const json& model) {
    const std::string unknown =
        in_.text(in_.member(model, "model.", "unk_token"), "model.unk_token");
    const auto found = ids_.find(unknown);
    if (found == ids_.end()) in_.fail("the unknown token " + quoted(unknown) + " is no token");
    out_->unknown_token = static_cast<int32_t>(found->second);
    out_->unknown_text = unknown;
    tables_.tokens[found->second].role = TokenRole::Unknown;
    const bool bytes = in_.flag(model, "byte_fallback", false);
    if (!bytes && !in_.flag(model, "fuse_unk", false)) {
      in_.fail("model.fuse_unk is false, which is not supported here");
    }
    if (!bytes) return;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof(name), "<0x%02X>", byte);
      auto found_byte = ids_.find(name);
      if (found_byte != ids_.end()) {
        tables_.tokens[found_byte->second] = {std::string(1, static_cast<char>(byte)),
                                              TokenRole::Byte, 0};
      } else if (byte < 0x80) {
        // Nobody asks for the byte of a character that is a token.
        found_byte = ids_.find(std::string(1, static_cast<char>(byte)));
      }
      // The table of texts has none with a zero byte.
      if (const auto zero = ids_.find(std::string(1, '\0')); byte == 0 && zero != ids_.end()) {
        found_byte = zero;
      }
      if (found_byte == ids_.end()) {
        in_.fail(std::string("model.byte_fallback is true, and ") + name + " is no token");
      }
      out_->byte_pieces.push_back(found_byte->second);
    }
  }

  void read_added() {
    for (const AddedTokenSetting& token : in_.added()) {
      if (token.text.empty()) continue;
      const uint32_t id = *token.id;
      if (id >= tables_.tokens.size()) tables_.tokens.resize(id + 1);
      const auto known = ids_.find(token.text);
      PieceTables::Piece& piece = tables_.tokens[id];
      if ((known != ids_.end() && known->second != id) ||
          (known == ids_.end() && !piece.text.empty() && piece.text != token.text)) {
        in_.fail("added token " + quoted(token.text) + " has id " + std::to_string(id) +
                 ", which is not its id in the vocabulary");
      }
      if (token.text.find('\0') != std::string::npos) {
        in_.fail("added token " + quoted(token.text) + " has a zero byte");
      }
      // Its text is normalised before it is looked for: no space is left in it.
      if (token.normalized && token.text.find(' ') != std::string::npos) {
        in_.fail("added token " + quoted(token.text) + " is looked for in text without spaces");
      }
      const bool byte = piece.role == TokenRole::Byte;
      if (!byte) piece.text = token.text;
      if (piece.role != TokenRole::Unknown && !byte) {
        piece.role = token.special ? TokenRole::Special : TokenRole::Added;
      }
      tables_.add_added(token, id);
    }
  }

  /// The piece that text is joined from and to. A token that is also added has another, for where its text comes up
  /// inside of a word.
  uint32_t piece_of(size_t merge, const std::string& text) {
    const auto found = ids_.find(text);
    if (found == ids_.end()) {
      in_.fail("merge " + std::to_string(merge + 1) + ": " + quoted(text) +
               " is not in the vocabulary");
    }
    return piece(text, found->second);
  }

  uint32_t piece(const std::string& text, uint32_t id) {
    const auto known = pieces_.find(id);
    if (known != pieces_.end()) return known->second;
    const bool plain = tables_.tokens[id].role == TokenRole::Plain;
    const uint32_t number = plain ? id : tables_.add_alias({text, TokenRole::Plain, 0}, id);
    pieces_.emplace(id, number);
    // The table of texts has none with a zero byte; no merge gives one.
    if (text.find('\0') == std::string::npos) tables_.look_up(text, number);
    return number;
  }

  void read_merges() {
    for (uint32_t id = 0; id < texts_.size(); ++id) {
      if (!texts_[id].empty() && character_bytes(texts_[id][0]) == texts_[id].size()) {
        piece(texts_[id], id);
      }
    }
    std::vector<schema::Merge> merges;
    std::set<std::pair<uint32_t, uint32_t>> seen;
    const auto list = in_.merges();
    for (size_t i = 0; i < list.size(); ++i) {
      const auto& [left, right] = list[i];
      if (left.empty() || right.empty()) in_.fail("merge " + std::to_string(i + 1) + " is empty");
      // A word ends before each mark.
      if (splits_ && (left + right).find(kMark, 1) != std::string::npos) continue;
      const uint32_t a = piece_of(i, left);
      const uint32_t b = piece_of(i, right);
      if (!seen.emplace(a, b).second) {
        in_.fail("merge " + std::to_string(i + 1) + " is there twice");
      }
      merges.emplace_back(a, b, static_cast<uint32_t>(i), piece_of(i, left + right));
    }
    out_->merges = build_merge_table(merges);
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
        drop = scheme_of(*part) != "never";
      } else {
        in_.fail("the decoder " + name + " is not supported here");
      }
    }
    if (!marks) in_.fail("no decoder makes spaces of U+2581, which is not supported");
    if (drop != out_->space_before_text) out_->drop_first_space = drop;
  }

  TokenizerJson in_;
  uint32_t tokens_;
  bool marks_spaces_ = false;
  bool splits_ = false;
  /// By id; empty where there is none.
  std::vector<std::string> texts_;
  std::unordered_map<std::string, uint32_t> ids_;
  std::unordered_map<uint32_t, uint32_t> pieces_;
  PieceTables tables_;
  std::unique_ptr<schema::TokenizerT> out_ = std::make_unique<schema::TokenizerT>();
};

}  // namespace

bool is_pieces_json(const json& tokenizer) {
  const json& model = TokenizerJson::optional(tokenizer, "model");
  if (TokenizerJson::optional(model, "byte_fallback") == true) return true;
  const std::string splits = TokenizerJson::optional(tokenizer, "pre_tokenizer").dump();
  return splits.find("\"ByteLevel\"") == std::string::npos &&
         splits.find("\"Metaspace\"") != std::string::npos;
}

std::unique_ptr<schema::TokenizerT> read_pieces_json(const std::string& path, const json& tokenizer,
                                                     uint32_t tokens) {
  return Reader(path, tokenizer, tokens).read();
}

}  // namespace oxbow::convert
