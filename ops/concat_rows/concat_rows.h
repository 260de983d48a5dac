#pragma once

// y = the rows of all inputs one after the other. F32; all numbers of rows are fixed.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

inline constexpr size_t kMaxConcatRowsInputs = 8;

extern const OpSignature kConcatRowsSignature;
Status bind_concat_rows(BindContext& context, RunFunction* run);
Status bind_concat_rows_vulkan(VulkanBindContext& context);

}  // namespace oxbow
