#pragma once

// Which neighbours SentencePiece's byte-pair encoding joins. Its files do not say: any two whose texts
// together are a piece, the piece of the highest score first.

#include <cstdint>
#include <string>
#include <vector>

#include "converter/text/tokenizer/sentencepiece_model.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

struct SentencePieceMerges {
  std::vector<schema::Merge> merges;
  /// Characters that are no pieces, but that pieces are made of: they are numbered from
  /// `first_character` on.
  std::vector<std::string> characters;
};

/// Pieces are numbered as the model has them.
SentencePieceMerges find_merges(const SentencePieceModel& model, uint32_t first_character);

}  // namespace oxbow::convert
