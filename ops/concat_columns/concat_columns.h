#pragma once

// y = the rows of all inputs side by side. F32.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

inline constexpr size_t kMaxConcatInputs = 8;

extern const OpSignature kConcatColumnsSignature;
Status bind_concat_columns(BindContext& context, RunFunction* run);
Status bind_concat_columns_vulkan(VulkanBindContext& context);

}  // namespace oxbow
