#include "converter/text/tokenizer/pieces_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "converter/text/tokenizer/byte_bpe.h"
#include "converter/text/tokenizer/merge_table.h"
#include "converter/text/tokenizer/unicode.h"
#include "host/errors.h"
#include "runtime/text/sentencepiece.h"
#include "runtime/text/tables/char_classes.h"

namespace oxbow::convert {
namespace {

using nlohmann::json;
using schema::TokenRole;

std::string quoted(const std::string& text) { return "'" + printable(text, 60) + "'"; }

/// A number of the file as `tokenizers` reads it: all digits as an integer, divided by a power of ten. Both steps round,
/// so that it may be the neighbour of the number that is meant, which decides between ways of equal score.
double as_read_there(double value) {
  char text[40];
  const auto end =
      std::to_chars(text, std::end(text), std::abs(value), std::chars_format::scientific);
  uint64_t digits = 0;
  int exponent = 0;
  const char* at = text;
  for (; at != end.ptr && *at != 'e'; ++at) {
    if (*at == '.') continue;
    digits = digits * 10 + static_cast<uint64_t>(*at - '0');
    if (at > text) --exponent;
  }
  int written = 0;
  const bool negative = at[1] == '-';
  std::from_chars(at + 2, end.ptr, written);
  exponent += negative ? -written : written;
  const double power = std::strtod(("1e" + std::to_string(std::abs(exponent))).c_str(), nullptr);
  const auto whole = static_cast<double>(digits);
  return std::copysign(exponent < 0 ? whole / power : whole * power, value);
}

}  // namespace

void PiecesModel::read_vocabulary() {
  texts_ =
      convert::read_vocabulary(in_.path(), in_.member(in_.model(), "model.", "vocab"), tokens_);
  for (uint32_t id = 0; id < texts_.size(); ++id) {
    if (!texts_[id].empty()) ids_[texts_[id]] = id;
  }
  tables_.tokens.resize(texts_.size());
  for (const auto& [text, id] : ids_) tables_.tokens[id] = {text, TokenRole::Plain, 0};
}

void PiecesModel::read_scores() {
  const json& list = in_.member(in_.model(), "model.", "vocab");
  if (!list.is_array() || list.empty() || list.size() > tokens_) {
    in_.fail("model.vocab is no list of 1 to " + std::to_string(tokens_) +
             " tokens, as many as the model has");
  }
  for (const json& entry : list) {
    const std::string place = "token " + std::to_string(texts_.size()) + " of model.vocab";
    if (!entry.is_array() || entry.size() != 2 || !entry[1].is_number()) {
      in_.fail(place + " is " + TokenizerJson::shown(entry) + ", expected a text and its score");
    }
    const std::string text = in_.text(entry[0], place);
    const auto score = entry[1].get<double>();
    if (!std::isfinite(score) || std::abs(score) > 1e30 ||
        (score != 0 && std::abs(score) < 1e-200)) {
      in_.fail(place + " has a score that is no number of use");
    }
    // Of two of the same text the last one is meant by it.
    if (!text.empty()) ids_[text] = static_cast<uint32_t>(texts_.size());
    tables_.tokens.push_back({text, TokenRole::Plain, 0});
    scores_.push_back(as_read_there(score));
    texts_.push_back(text);
  }
}

void PiecesModel::read_unknown(const std::string& text, schema::TokenizerT& out) {
  const auto found = ids_.find(text);
  if (found == ids_.end()) in_.fail("the unknown token " + quoted(text) + " is no token");
  set_unknown(found->second, out);
}

void PiecesModel::set_unknown(uint32_t id, schema::TokenizerT& out) {
  out.unknown_token = static_cast<int32_t>(id);
  out.unknown_text = texts_[id];
  tables_.tokens[id].role = TokenRole::Unknown;
  if (!scores_.empty()) scores_[id] = *std::min_element(scores_.begin(), scores_.end()) - 10.0;
}

void PiecesModel::read_bytes(schema::TokenizerT& out) {
  for (uint32_t byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    auto found = ids_.find(name);
    if (found != ids_.end()) {
      tables_.tokens[found->second] = {std::string(1, static_cast<char>(byte)), TokenRole::Byte, 0};
    } else if (byte < 0x80) {
      // Nobody asks for the byte of a character that is a token.
      found = ids_.find(std::string(1, static_cast<char>(byte)));
    }
    // The table of texts has none with a zero byte.
    if (const auto zero = ids_.find(std::string(1, '\0')); byte == 0 && zero != ids_.end()) {
      found = zero;
    }
    if (found == ids_.end()) {
      in_.fail(std::string("model.byte_fallback is true, and ") + name + " is no token");
    }
    out.byte_pieces.push_back(found->second);
  }
}

void PiecesModel::read_added() {
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
    const bool byte = piece.role == TokenRole::Byte;
    if (!byte) piece.text = token.text;
    if (piece.role != TokenRole::Unknown && !byte) {
      piece.role = token.special ? TokenRole::Special : TokenRole::Added;
    }
    tables_.add_added(token, id);
  }
}

void PiecesModel::look_up_all() {
  const bool scored = !scores_.empty();
  if (scored) scores_.resize(tables_.tokens.size());
  for (uint32_t id = 0; id < texts_.size(); ++id) {
    const std::string& text = texts_[id];
    if (text.empty() || ids_.at(text) != id || text.find('\0') != std::string::npos) continue;
    if (tables_.tokens[id].role == TokenRole::Plain) {
      tables_.look_up(text, id);
    } else if (tables_.tokens[id].role == TokenRole::Added) {
      // Also where it is not taken out of the text first.
      tables_.look_up(text, tables_.add_alias({text, TokenRole::Plain, 0}, id));
      if (scored) scores_.push_back(scores_[id]);
    }
  }
}

/// The piece that text is joined from and to. A token that is also added has another, for where its text comes up
/// inside of a word.
uint32_t PiecesModel::piece_of(size_t merge, const std::string& text) {
  const auto found = ids_.find(text);
  if (found == ids_.end()) {
    in_.fail("merge " + std::to_string(merge + 1) + ": " + quoted(text) +
             " is not in the vocabulary");
  }
  return piece(text, found->second);
}

uint32_t PiecesModel::piece(const std::string& text, uint32_t id) {
  const auto known = pieces_.find(id);
  if (known != pieces_.end()) return known->second;
  const bool plain = tables_.tokens[id].role == TokenRole::Plain;
  const uint32_t number = plain ? id : tables_.add_alias({text, TokenRole::Plain, 0}, id);
  pieces_.emplace(id, number);
  // The table of texts has none with a zero byte; no merge gives one.
  if (text.find('\0') == std::string::npos) tables_.look_up(text, number);
  return number;
}

void PiecesModel::read_merges(const std::string& no_mark_inside, const std::string& prefix,
                              const std::string& suffix, schema::TokenizerT& out) {
  for (uint32_t id = 0; id < texts_.size(); ++id) {
    std::string text = texts_[id];
    if (!prefix.empty() && text.starts_with(prefix)) text = text.substr(prefix.size());
    if (!suffix.empty() && text.ends_with(suffix)) text.resize(text.size() - suffix.size());
    const bool whole = tables_.tokens[id].role == TokenRole::Plain && out.whole_words;
    if (!texts_[id].empty() &&
        (whole || (!text.empty() && character_bytes(text[0]) == text.size()))) {
      piece(texts_[id], id);
    }
  }
  std::vector<schema::Merge> merges;
  std::set<std::pair<uint32_t, uint32_t>> seen;
  const auto list = in_.merges();
  for (size_t i = 0; i < list.size(); ++i) {
    const auto& [left, right] = list[i];
    if (left.empty() || right.empty()) in_.fail("merge " + std::to_string(i + 1) + " is empty");
    if (!no_mark_inside.empty() && (left + right).find(no_mark_inside, 1) != std::string::npos) {
      continue;
    }
    if (!right.starts_with(prefix)) {
      in_.fail("merge " + std::to_string(i + 1) + ": " + quoted(right) + " does not begin with " +
               quoted(prefix));
    }
    const uint32_t a = piece_of(i, left);
    const uint32_t b = piece_of(i, right);
    if (!seen.emplace(a, b).second) in_.fail("merge " + std::to_string(i + 1) + " is there twice");
    merges.emplace_back(a, b, static_cast<uint32_t>(i),
                        piece_of(i, left + right.substr(prefix.size())));
  }
  out.merges = build_merge_table(merges);
}

void PiecesModel::write(schema::TokenizerT& out) {
  tables_.write(out, false);
  out.exact_scores = scores_;
  out.classes = std::make_unique<schema::CharClassesT>(build_char_classes(std::vector<ClassRule>{
      {CodePoints::white_space(), kSpace}, {CodePoints::word_characters(), kWordCharacter}}));
}

}  // namespace oxbow::convert
