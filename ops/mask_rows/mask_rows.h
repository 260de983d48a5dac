#pragma once

// y[i] = x[i] where mask[i] is not 0, otherwise zeros, whatever x holds there.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

extern const OpSignature kMaskRowsSignature;
Status bind_mask_rows(BindContext& context, RunFunction* run);
Status bind_mask_rows_vulkan(VulkanBindContext& context);

}  // namespace oxbow
