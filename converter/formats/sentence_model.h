#pragma once

// A folder of the library sentence-transformers: around a model whose hidden states are known, how the rows of
// a text become one (modules.json, 1_Pooling, 2_Normalize), how long texts may be (sentence_bert_config.json) and
// what is put before them (config_sentence_transformers.json).

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "converter/formats/gguf.h"

namespace oxbow::convert {

struct SentenceModel {
  /// The folder of the model itself.
  std::string transformer;
  /// mean, first, last or max; empty when it is none of these.
  std::string pooling;
  bool normalise = false;
  /// With the tokens around a text; 0: as many as the model takes.
  uint32_t max_tokens = 0;
  /// By their names; the default one's name, or nothing.
  std::map<std::string, std::string> prompts;
  std::string default_prompt;
  /// What embeddings will lack.
  std::vector<std::string> warnings;
  /// Names in the folder that were read.
  std::set<std::string> files;

  /// As settings of a model file; see docs/encoders.md.
  std::map<std::string, std::string> settings() const;
};

/// Nothing when `directory` has no modules.json. Throws InputError.
std::optional<SentenceModel> read_sentence_model(const std::string& directory);
/// The same of a GGUF file, which says how rows become one; llama.cpp normalises them. Nothing when it does not say.
std::optional<SentenceModel> read_gguf_sentences(const Gguf& gguf);

}  // namespace oxbow::convert
