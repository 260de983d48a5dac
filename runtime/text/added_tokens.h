#pragma once

// Tokens whose text is taken out of a text before anything else is done with it.

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/text/tokenizer.h"

namespace oxbow {

struct AddedMatch {
  /// Where it lies; both are the text's size when there is none.
  size_t begin = 0;
  size_t end = 0;
  uint32_t token = 0;
};

/// The first added token in `text`. When the text ends where one may begin and is not the last,
/// `begin` tells where, and `end` is the same.
AddedMatch find_added(const Tokenizer& tokenizer, std::span<const char> text, bool last);

}  // namespace oxbow
