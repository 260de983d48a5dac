#pragma once

// The test vectors of tests/tokenizers: lines, and what the original libraries make of them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/text/tokenizer.h"

namespace oxbow::testing {

/// The folder of a vocabulary such as "gpt2/latin".
std::filesystem::path tokenizer_folder(const std::string& vocabulary);

/// "kind/name" of every vocabulary of a kind, sorted.
std::vector<std::string> tokenizer_vocabularies(const std::string& kind);

struct TokenizerVectors {
  std::vector<std::string> lines;
  /// For each line.
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::string> texts;
};

TokenizerVectors read_tokenizer_vectors(const std::string& vocabulary);

/// Every line becomes the expected ids, whole and given in pieces, and those the expected text.
void expect_vectors(const Tokenizer& tokenizer, const TokenizerVectors& vectors,
                    bool parse_special = true);

}  // namespace oxbow::testing
