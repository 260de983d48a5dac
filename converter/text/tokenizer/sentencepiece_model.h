#pragma once

// What a SentencePiece vocabulary consists of, before it becomes tables.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace oxbow::convert {

/// Numbered as in SentencePiece's files, and in those of others that took its vocabularies.
enum class PieceType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct SentencePiece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::kNormal;
};

struct SentencePieceModel {
  enum class Algorithm : uint8_t { kUnigram = 1, kBpe = 2 };

  /// The file, for messages.
  std::string name;
  Algorithm algorithm = Algorithm::kUnigram;
  /// In the order of their ids.
  std::vector<SentencePiece> pieces;
  /// Replacements, as the file has them; empty: none.
  std::string char_map;
  bool byte_fallback = false;
  bool space_before_text = true;
  bool single_spaces = true;
  bool space_behind_word = false;
  /// What unknown text is decoded to.
  std::string unknown_text = " \xe2\x81\x87 ";
};

/// `bytes` are those of a `*.model` file. Throws InputError for what is malformed or not supported.
SentencePieceModel parse_sentencepiece_model(const std::string& name, std::string_view bytes);
SentencePieceModel read_sentencepiece_model(const std::string& path);

/// The byte that the text of a piece of type kByte names, "<0x0A>"; -1: none.
int byte_of_piece(const std::string& text);

/// What SentencePiece itself asks of a vocabulary, so that what it refuses is refused.
void check_pieces(const SentencePieceModel& model);

}  // namespace oxbow::convert
