#pragma once

// Vocabularies of single bytes and of single characters.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "schema/model_generated.h"

namespace oxbow::convert {

/// A token for each byte. Throws InputError unless the model has 256 tokens.
std::unique_ptr<schema::TokenizerT> byte_tokenizer(uint32_t vocabulary);

/// From a JSON array of one-character strings, in the order of their ids; `path` is its name for
/// messages. Throws InputError when it does not fit a vocabulary of this size.
std::unique_ptr<schema::TokenizerT> read_characters(const std::string& path,
                                                    const nlohmann::json& list,
                                                    uint32_t vocabulary);

}  // namespace oxbow::convert
