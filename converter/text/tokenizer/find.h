#pragma once

// Finds the tokenizer of a checkpoint among the files beside it, or reads the one that was named.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "converter/formats/gguf.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

struct FoundTokenizer {
  /// Null: there is none.
  std::unique_ptr<schema::TokenizerT> tokenizer;
  /// What was found, in words; and what was left out, and why.
  std::vector<std::string> notes;
  /// What may be wrong though it can be used.
  std::vector<std::string> warnings;
  /// Files that were read, without their folder.
  std::vector<std::string> files;
};

/// What the model tells of itself.
struct TokenizerModel {
  std::string type;
  uint32_t vocabulary = 0;
};

/// Looks for a tokenizer in the folder of a checkpoint. Throws InputError when there is one that
/// cannot be used.
FoundTokenizer find_tokenizer(const std::string& directory, const TokenizerModel& model);

/// `source` is the word "byte", a folder, or a file: tokenizer.json, vocab.json with merges.txt
/// beside it, vocab.txt, a SentencePiece model, or a JSON array of characters. Throws InputError.
FoundTokenizer read_tokenizer(const std::string& source, const TokenizerModel& model);

/// The tokenizer inside a GGUF file, if it has one. Throws InputError.
FoundTokenizer read_gguf_tokenizer(const Gguf& gguf, const TokenizerModel& model);

}  // namespace oxbow::convert
