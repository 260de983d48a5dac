#include "converter/text/tokenizer/piece_tables.h"

#include <algorithm>
#include <limits>

#include "converter/text/tokenizer/char_map.h"
#include "converter/text/tokenizer/double_array.h"

namespace oxbow::convert {

uint32_t PieceTables::add_alias(Piece piece, uint32_t token) {
  extra_.push_back(std::move(piece));
  aliases_.push_back(token);
  return static_cast<uint32_t>(tokens.size() + extra_.size() - 1);
}

void PieceTables::add_added(const AddedTokenSetting& setting, uint32_t token) {
  added_[setting.text] = token;
  if (setting.strip_left || setting.strip_right || setting.single_word || setting.normalized) {
    added_flags_[token] = {token, setting.strip_left, setting.strip_right, setting.single_word,
                           setting.normalized};
  }
}

void PieceTables::write(schema::TokenizerT& tokenizer, bool scores) const {
  for (const std::vector<Piece>* pieces : {&tokens, &extra_}) {
    for (const Piece& piece : *pieces) {
      tokenizer.texts.insert(tokenizer.texts.end(), piece.text.begin(), piece.text.end());
      tokenizer.text_ends.push_back(static_cast<uint32_t>(tokenizer.texts.size()));
      tokenizer.roles.push_back(piece.role);
      if (scores) tokenizer.scores.push_back(piece.score);
    }
  }
  tokenizer.aliases = aliases_;
  tokenizer.trie = build_double_array(pieces_of_text_);
  tokenizer.added_trie = build_double_array(added_);
  for (const auto& [token, flags] : added_flags_) tokenizer.added.push_back(flags);
}

std::unique_ptr<schema::TokenizerT> begin_tokenizer(const SentencePieceModel& model) {
  auto tokenizer = std::make_unique<schema::TokenizerT>();
  tokenizer->kind = model.algorithm == SentencePieceModel::Algorithm::kUnigram
                        ? schema::TokenizerKind::Unigram
                        : schema::TokenizerKind::Bpe;
  tokenizer->char_map = split_char_map(model.name, model.char_map);
  tokenizer->space_before_text = model.space_before_text;
  tokenizer->single_spaces = model.single_spaces;
  tokenizer->space_behind_word = model.space_behind_word;
  tokenizer->unknown_text = model.unknown_text;
  return tokenizer;
}

float unknown_score(const SentencePieceModel& model) {
  float lowest = std::numeric_limits<float>::max();
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type == PieceType::kNormal) lowest = std::min(lowest, piece.score);
  }
  return lowest - 10.0f;
}

float score_of(const SentencePiece& piece, float unknown) {
  if (piece.type == PieceType::kUnknown) return unknown;
  if (piece.type != PieceType::kUserDefined) return piece.score;
  return static_cast<float>(0.1 * static_cast<double>(piece.text.size() - 1));
}

}  // namespace oxbow::convert
