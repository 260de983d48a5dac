#pragma once

// What the original libraries made of lines of text: see tests/tokenizers/README.md.

#include <cstdint>
#include <string>
#include <vector>

namespace oxbow::testing {

struct TokenizerVector {
  std::string line;
  std::vector<int32_t> ids;
  /// What the ids decode to.
  std::string text;
};

/// `name` is a folder of tests/tokenizers, such as "gpt2/latin". Throws std::runtime_error.
std::vector<TokenizerVector> read_tokenizer_vectors(const std::string& name);

/// The folder itself.
std::string tokenizer_folder(const std::string& name);

}  // namespace oxbow::testing
