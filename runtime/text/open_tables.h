#pragma once

// Tables of a file that several parts of a tokenizer have, verified.

#include <span>

#include "runtime/base/status.h"
#include "runtime/text/tables/char_classes.h"
#include "runtime/text/tables/char_map.h"
#include "schema/model_generated.h"

namespace oxbow {

Status open_classes(const schema::CharClasses& table, CharClasses* classes, Error* error);
/// Null: there is none, which is nothing wrong.
Status open_char_map(const schema::CharMap* table, CharMap* map, Error* error);

}  // namespace oxbow
