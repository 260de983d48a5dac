#pragma once

// y = the last rows(y) rows of x: the tokens whose logits the caller wants. F32, or I8 with the
// same scales. A run that wants more rows than it has fails.

#include "runtime/op.h"

namespace oxbow {

Status bind_take_rows(BindContext& context, RunFunction* run);

}  // namespace oxbow
