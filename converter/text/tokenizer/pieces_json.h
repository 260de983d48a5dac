#pragma once

// tokenizer.json made from SentencePiece's models: byte-pair encodings of characters, and unigram models. Spaces are
// marked by U+2581 in both.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "schema/model_generated.h"

namespace oxbow::convert {

/// Whether the model is a byte-pair encoding of characters and not of bytes.
bool is_pieces_json(const std::string& path, const nlohmann::json& tokenizer);

/// Throws InputError.
std::unique_ptr<schema::TokenizerT> read_pieces_json(const std::string& path,
                                                     const nlohmann::json& tokenizer,
                                                     uint32_t tokens);

}  // namespace oxbow::convert
