#pragma once

// BERT's tokenizer from the files it comes in.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "converter/text/tokenizer/settings.h"
#include "converter/text/tokenizer/wordpiece_json.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

/// From a vocab.txt, a token in each line, for a model of at most `vocabulary` tokens. Throws
/// InputError, also for settings that ask for what is not there.
std::unique_ptr<schema::TokenizerT> read_wordpiece_vocabulary(const std::string& path,
                                                              const TokenizerSettings& settings,
                                                              uint32_t vocabulary);

/// From a tokenizer.json whose model is WordPiece; `file` is its parsed content and `path` its name
/// for messages.
std::unique_ptr<schema::TokenizerT> read_wordpiece_json(const std::string& path,
                                                        const nlohmann::json& file,
                                                        uint32_t vocabulary);

/// From parts, wherever they come from.
std::unique_ptr<schema::TokenizerT> make_wordpiece_tokenizer(WordPieceParts parts,
                                                             uint32_t vocabulary);

}  // namespace oxbow::convert
