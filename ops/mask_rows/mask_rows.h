#pragma once

// y[i] = x[i] where mask[i] is not 0, otherwise zeros, whatever x holds there.

#include "runtime/op.h"

namespace oxbow {

Status bind_mask_rows(BindContext& context, RunFunction* run);
Status bind_mask_rows_vulkan(VulkanBindContext& context);

}  // namespace oxbow
