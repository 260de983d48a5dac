#pragma once

// Byte-pair encodings as lists of tokens in the order they were learned: files of the tiktoken library (lines of base64
// and a number), which is also Llama 3's tokenizer.model, and Mistral's tekken.json. Two neighbours join when what they
// make is a token, the lowest number first.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "converter/text/tokenizer/settings.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

/// Whether the bytes begin as a file of tiktoken does.
bool is_tiktoken(std::string_view bytes);

/// How text is cut is not in the file: the name of the file or the number of its tokens tells. Special tokens are those
/// of the settings, or the ones that belong to a list that is known. Throws InputError.
std::unique_ptr<schema::TokenizerT> read_tiktoken(const std::string& path, std::string_view bytes,
                                                  const TokenizerSettings& settings,
                                                  uint32_t tokens);

std::unique_ptr<schema::TokenizerT> read_tekken(const std::string& path, const nlohmann::json& file,
                                                uint32_t tokens);

}  // namespace oxbow::convert
