#pragma once

// y = the rows of x whose mask is not 0, in order. F32, or I8 with the same scales. How many there
// are is told by the output's row symbol, which this op sets.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

extern const OpSignature kSelectRowsSignature;
/// Inputs x, mask I32 [T, 1].
Status bind_select_rows(BindContext& context, RunFunction* run);
Status bind_select_rows_vulkan(VulkanBindContext& context);

}  // namespace oxbow
