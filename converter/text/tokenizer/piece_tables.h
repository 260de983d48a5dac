#pragma once

// Collects the pieces of a SentencePiece vocabulary and writes the tables that are made of them.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "converter/text/tokenizer/sentencepiece_model.h"
#include "converter/text/tokenizer/settings.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

class PieceTables {
 public:
  struct Piece {
    std::string text;
    schema::TokenRole role = schema::TokenRole::Unused;
    float score = 0;
  };

  /// The tokens, by their ids. One that is never set is unused and empty.
  std::vector<Piece> tokens;

  /// Adds a piece that stands for a token; returns its number. No token may be added any more.
  uint32_t add_alias(Piece piece, uint32_t token);
  /// Text that is looked up becomes this piece.
  void look_up(const std::string& text, uint32_t piece) { pieces_of_text_[text] = piece; }
  /// Text that becomes this token before anything is looked up.
  void add_added(const AddedTokenSetting& setting, uint32_t token);

  /// Fills texts, roles, scores (when wanted), aliases and what text is looked up in.
  void write(schema::TokenizerT& tokenizer, bool scores) const;

 private:
  std::vector<Piece> extra_;
  std::vector<uint32_t> aliases_;
  std::map<std::string, uint32_t> pieces_of_text_;
  std::map<std::string, uint32_t> added_;
  std::map<uint32_t, schema::AddedToken> added_flags_;
};

/// The kind, the replacements, and how spaces are treated: what does not depend on ids.
std::unique_ptr<schema::TokenizerT> begin_tokenizer(const SentencePieceModel& model);

/// The score of unknown text: less than that of any normal piece, by far.
float unknown_score(const SentencePieceModel& model);
/// What decides between pieces. User-defined ones always win, the longest first.
float score_of(const SentencePiece& piece, float unknown);

}  // namespace oxbow::convert
