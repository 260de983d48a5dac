#pragma once

// The vocabulary that goes into the file, so that text can be fed without any other file.

#include <cstdint>
#include <memory>
#include <string>

#include "schema/model_generated.h"

namespace oxbow::convert {

/// `source` is the word "byte" (256 tokens) or a file with a JSON array of one-character strings,
/// in the order of their ids. Throws InputError when it does not fit a vocabulary of this size.
std::unique_ptr<schema::TokenizerT> read_tokenizer(const std::string& source, uint32_t vocabulary);

}  // namespace oxbow::convert
