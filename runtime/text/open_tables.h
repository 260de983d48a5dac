#pragma once

// Tables of a file that several parts of a tokenizer have, verified.

#include <cstddef>
#include <span>

#include "runtime/base/status.h"
#include "runtime/text/tables/char_classes.h"
#include "runtime/text/tables/char_map.h"
#include "schema/model_generated.h"

namespace oxbow {

/// Bytes of a piece at most: a byte of text costs no more steps than that, whatever the tables lead to. SentencePiece's own
/// limit is 8,000.
inline constexpr size_t kLongestText = 8192;
/// The same for special tokens, which are looked for in whole messages.
inline constexpr size_t kLongestSpecial = 1024;
/// Bytes that a piece of text becomes at most, where nothing says less.
inline constexpr size_t kMaxContent = 1024;

Status open_classes(const schema::CharClasses& table, CharClasses* classes, Error* error);
/// Null: there is none, which is nothing wrong.
Status open_char_map(const schema::CharMap* table, CharMap* map, Error* error);
/// Whether no string of a table is longer.
bool strings_fit(const schema::CharMap* map, size_t limit);

}  // namespace oxbow
