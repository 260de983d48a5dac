#pragma once

// y = the last, or the first, rows(y) rows of x: the tokens whose logits or hidden states the caller
// wants. F32, also straight to the caller's memory, or I8 with the same scales. A run that wants more
// rows than it has fails.

#include "runtime/op.h"

namespace oxbow {

Status bind_take_rows(BindContext& context, RunFunction* run);

}  // namespace oxbow
