#pragma once

// y = the columns of x from `first` on, as many as y has. F32.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

extern const OpSignature kSliceColumnsSignature;
Status bind_slice_columns(BindContext& context, RunFunction* run);
Status bind_slice_columns_vulkan(VulkanBindContext& context);

}  // namespace oxbow
