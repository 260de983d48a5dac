#include "converter/text/tokenizer/byte_bpe.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "converter/text/tokenizer/double_array.h"
#include "converter/text/tokenizer/merge_table.h"
#include "converter/text/tokenizer/unicode.h"
#include "host/errors.h"
#include "runtime/text/bpe.h"
#include "runtime/text/tables/char_classes.h"
#include "runtime/text/utf8.h"

namespace oxbow::convert {
namespace {

using schema::TokenRole;

/// The code point that stands for each byte: itself where it is printable, else the next from U+0100.
std::array<uint32_t, 256> printable_bytes() {
  std::array<uint32_t, 256> out{};
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool itself = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
    out[byte] = itself ? byte : next++;
  }
  return out;
}

class Builder {
 public:
  Builder(ByteBpeVocabulary vocabulary, uint32_t limit)
      : in_(std::move(vocabulary)), limit_(limit) {}

  std::unique_ptr<schema::TokenizerT> build() {
    out_->kind = schema::TokenizerKind::ByteBpe;
    add_ids();
    place_added();
    write_texts();
    write_merges();
    write_trie();
    write_unknown();
    write_settings();
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(in_.source + ": " + what);
  }
  static std::string quoted(const std::string& text) { return "'" + printable(text, 60) + "'"; }

  void add_ids() {
    if (in_.tokens.size() > limit_) {
      fail(std::to_string(in_.tokens.size()) + " tokens, expected at most the " +
           std::to_string(limit_) + " of the model");
    }
    for (uint32_t id = 0; id < in_.tokens.size(); ++id) {
      if (in_.tokens[id].empty()) continue;
      const auto [first, is_new] = ids_.emplace(in_.tokens[id], id);
      if (!is_new) {
        fail("tokens " + std::to_string(first->second) + " and " + std::to_string(id) +
             " are both " + quoted(in_.tokens[id]));
      }
    }
    // Those that are only added have no place in the vocabulary of the merges.
    roles_.assign(in_.tokens.size(), TokenRole::Unused);
  }

  void place_added() {
    for (const AddedTokenSetting& added : in_.added) {
      if (added.text.empty()) continue;
      if (added.text.find('\0') != std::string::npos) {
        fail("added token " + quoted(added.text) + " has a zero byte, which is not supported");
      }
      const uint32_t id = added.id.value();
      if (id >= limit_) {
        fail("added token " + quoted(added.text) + " has id " + std::to_string(id) +
             ", expected one below the " + std::to_string(limit_) + " of the model");
      }
      if (id >= in_.tokens.size()) {
        in_.tokens.resize(id + 1);
        roles_.resize(id + 1, TokenRole::Unused);
      }
      const auto known = ids_.find(added.text);
      if ((known != ids_.end() && known->second != id) ||
          (!in_.tokens[id].empty() && in_.tokens[id] != added.text)) {
        fail("added token " + quoted(added.text) + " has id " + std::to_string(id) +
             ", which is not its id in the vocabulary");
      }
      if (!added_texts_.emplace(added.text, id).second) {
        fail("added token " + quoted(added.text) + " is there twice");
      }
      in_.tokens[id] = added.text;
      roles_[id] = added.special ? TokenRole::Special : TokenRole::Added;
      if (added.strip_left || added.strip_right || added.single_word || added.normalized) {
        out_->added.emplace_back(id, added.strip_left, added.strip_right, added.single_word,
                                 added.normalized);
      }
    }
    std::sort(out_->added.begin(), out_->added.end(),
              [](const auto& a, const auto& b) { return a.token() < b.token(); });
    out_->added_trie = build_double_array(added_texts_);
  }

  /// What tokens become as text. An added token is read as if it were in the printable form, where it
  /// can be: so does the library these files are made with.
  void write_texts() {
    bytes_.resize(in_.tokens.size());
    for (size_t id = 0; id < in_.tokens.size(); ++id) {
      std::string& bytes = bytes_[id];
      if (!bytes_of_printable(in_.tokens[id], &bytes)) bytes = in_.tokens[id];
      out_->texts.insert(out_->texts.end(), bytes.begin(), bytes.end());
      if (out_->texts.size() > INT32_MAX) fail("more than 2 GB of text");
      out_->text_ends.push_back(static_cast<uint32_t>(out_->texts.size()));
    }
  }

  uint32_t part(size_t merge, const std::string& text) const {
    const auto found = ids_.find(text);
    if (found == ids_.end()) {
      fail("merge " + std::to_string(merge + 1) + ": " + quoted(text) +
           " is not in the vocabulary");
    }
    return found->second;
  }

  void write_merges() {
    std::vector<schema::Merge> merges;
    std::map<std::pair<uint32_t, uint32_t>, size_t> seen;
    for (size_t i = 0; i < in_.merges.size(); ++i) {
      const auto& [left, right] = in_.merges[i];
      if (left.empty() || right.empty()) {
        fail("merge " + std::to_string(i + 1) + " has an empty part, expected two tokens");
      }
      const uint32_t a = part(i, left);
      const uint32_t b = part(i, right);
      const auto [first, is_new] = seen.emplace(std::pair(a, b), i);
      if (!is_new) {
        fail("merges " + std::to_string(first->second + 1) + " and " + std::to_string(i + 1) +
             " are the same");
      }
      const uint32_t rank = in_.ranks.empty() ? static_cast<uint32_t>(i) : in_.ranks[i];
      merges.emplace_back(a, b, rank, part(i, left + right));
    }
    out_->merges = build_merge_table(merges);
    const std::array<uint32_t, 256> printable_of = printable_bytes();
    for (size_t byte = 0; byte < 256; ++byte) {
      char text[4];
      const std::string character(text, write_utf8(printable_of[byte], text));
      out_->byte_pieces.push_back(piece_or_none(character));
      if (!in_.suffix.empty())
        out_->last_byte_pieces.push_back(piece_or_none(character + in_.suffix));
    }
    out_->word_suffix = in_.suffix;
  }

  uint32_t piece_or_none(const std::string& text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? kNoPiece : found->second;
  }

  /// Whether the merges make this token of its text. If not, they make it of no text at all: inside a
  /// longer word they would have to take the same steps.
  bool reachable(uint32_t id) {
    std::vector<Symbol> symbols;
    for (const char byte : bytes_[id]) {
      symbols.push_back({out_->byte_pieces[static_cast<uint8_t>(byte)], 1});
    }
    scratch_.resize(
        std::max(scratch_.size(), merge_scratch_bytes(symbols.size()) / sizeof(uint32_t)));
    const MergeTable merges(out_->merges);
    return merge_symbols(merges, symbols, std::as_writable_bytes(std::span(scratch_))) == 1 &&
           symbols[0].piece == id;
  }

  /// The words that need no merges: those the merges would lead to anyway, and with `whole_words` all.
  void write_trie() {
    std::map<std::string, uint32_t> words;
    if (!in_.suffix.empty()) {
      // Words are not looked up: their texts have no suffix.
      for (TokenRole& role : roles_) {
        if (role == TokenRole::Unused) role = TokenRole::Plain;
      }
      out_->trie = build_double_array(words);
      out_->roles = roles_;
      return;
    }
    for (const auto& [text, id] : ids_) {
      std::string bytes;
      if (!bytes_of_printable(text, &bytes)) continue;
      const bool reached = reachable(id);
      if (!reached && !in_.whole_words) continue;
      if (!reached && bytes.find('\0') != std::string::npos) {
        fail("token " + std::to_string(id) +
             " has a zero byte and no merges lead to it, which is not supported");
      }
      words.emplace(bytes, id);
      if (roles_[id] == TokenRole::Unused) roles_[id] = TokenRole::Plain;
    }
    out_->trie = build_double_array(words);
    out_->whole_words = true;
    out_->roles = roles_;
  }

  void write_unknown() {
    if (in_.unknown.empty()) return;
    const auto found = ids_.find(in_.unknown);
    if (found == ids_.end()) {
      fail("the token for what is unknown, " + quoted(in_.unknown) + ", is not in the vocabulary");
    }
    out_->unknown_token = static_cast<int32_t>(found->second);
  }

  void write_settings() {
    out_->split = in_.split;
    out_->max_digits = in_.max_digits;
    for (const std::vector<uint32_t>* ids :
         {&in_.before, &in_.after, &in_.pair_between, &in_.pair_after}) {
      for (const uint32_t id : *ids) {
        if (id >= limit_)
          fail("the template has token " + std::to_string(id) + ", which the model lacks");
      }
    }
    out_->before = in_.before;
    out_->after = in_.after;
    out_->pair_between = in_.pair_between;
    out_->pair_after = in_.pair_after;
    if (!in_.mask.empty()) {
      const auto added = added_texts_.find(in_.mask);
      if (added == added_texts_.end())
        fail("the mask token " + quoted(in_.mask) + " is not in the vocabulary");
      out_->mask_token = static_cast<int32_t>(added->second);
    }
    write_normal_form(in_.form,
                      {{CodePoints::letters(), kLetter},
                       {CodePoints::numbers(), kNumber},
                       {CodePoints::white_space(), kSpace},
                       {CodePoints::word_characters(), kWordCharacter}},
                      *out_);
    out_->steps = std::move(in_.steps);
    if (!in_.patterns.empty()) write_patterns(in_.source, in_.patterns, *out_);
  }

  ByteBpeVocabulary in_;
  uint32_t limit_;
  std::unordered_map<std::string, uint32_t> ids_;
  std::map<std::string, uint32_t> added_texts_;
  std::vector<TokenRole> roles_;
  std::vector<std::string> bytes_;
  std::vector<uint32_t> scratch_;
  std::unique_ptr<schema::TokenizerT> out_ = std::make_unique<schema::TokenizerT>();
};

}  // namespace

std::string printable_of_bytes(const std::string& bytes) {
  static const std::array<uint32_t, 256> printable_of = printable_bytes();
  std::string out;
  for (const char byte : bytes) {
    char text[4];
    out.append(text, write_utf8(printable_of[static_cast<uint8_t>(byte)], text));
  }
  return out;
}

bool bytes_of_printable(const std::string& text, std::string* bytes) {
  static const std::vector<int16_t> byte_of = [] {
    std::vector<int16_t> out(0x200, -1);
    const std::array<uint32_t, 256> printable_of = printable_bytes();
    for (size_t byte = 0; byte < 256; ++byte) out[printable_of[byte]] = static_cast<int16_t>(byte);
    return out;
  }();
  bytes->clear();
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = read_utf8(std::span(text).subspan(at));
    if (next.kind != Utf8Character::Kind::kCharacter || next.code_point >= byte_of.size() ||
        byte_of[next.code_point] < 0) {
      return false;
    }
    bytes->push_back(static_cast<char>(byte_of[next.code_point]));
    at += next.bytes;
  }
  return true;
}

std::unique_ptr<schema::TokenizerT> build_byte_bpe(ByteBpeVocabulary vocabulary, uint32_t tokens) {
  return Builder(std::move(vocabulary), tokens).build();
}

}  // namespace oxbow::convert
