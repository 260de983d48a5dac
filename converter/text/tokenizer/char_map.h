#pragma once

// The table of replacements in a SentencePiece file: a double array of sequences and the strings they
// are replaced by, in one block of bytes.

#include <memory>
#include <string>

#include "schema/model_generated.h"

namespace oxbow::convert {

/// The two parts of `block`; null when it is empty. Throws InputError, with `name` for the file, when
/// it is not what it must be.
std::unique_ptr<schema::CharMapT> split_char_map(const std::string& name, const std::string& block);

}  // namespace oxbow::convert
