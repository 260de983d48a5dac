#pragma once

// y[t] = x[(t + offset) / group], and zeros where x has no such row: rows made longer by repetition, or moved. F32. With a
// shape the op counts its rows, the shape's first number times `length`; otherwise y has the rows it has.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

extern const OpSignature kRepeatRowsSignature;
/// Inputs x, then shape I32 [numbers, 1] if the options say so.
Status bind_repeat_rows(BindContext& context, RunFunction* run);
Status bind_repeat_rows_vulkan(VulkanBindContext& context);

}  // namespace oxbow
