#pragma once

// tokenizer.json in general: any normalizers, text cut into words, and a model for each word: Unigram, WordLevel,
// WordPiece, or BPE of characters. What is faster because it is one of the usual ways has readers of its own.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "schema/model_generated.h"

namespace oxbow::convert {

/// `mask`: the text of the token for a word to be filled in; empty: none. Throws InputError.
std::unique_ptr<schema::TokenizerT> read_words_json(const std::string& path,
                                                    const nlohmann::json& tokenizer,
                                                    const std::string& mask, uint32_t tokens);

}  // namespace oxbow::convert
