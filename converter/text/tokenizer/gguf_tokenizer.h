#pragma once

// The tables of a vocabulary from a GGUF file. Its control tokens are found in text too, as in the
// tokenizers that such vocabularies come from.

#include <cstdint>
#include <memory>
#include <string>

#include "converter/text/tokenizer/gguf_vocabulary.h"
#include "schema/model_generated.h"

namespace oxbow::convert {

/// `source` is the file, for messages. Throws InputError when the vocabulary does not hold together or
/// is larger than the model's `tokens`.
std::unique_ptr<schema::TokenizerT> make_gguf_tokenizer(const std::string& source,
                                                        const GgufVocabulary& vocabulary,
                                                        uint32_t tokens);

}  // namespace oxbow::convert
