#pragma once

// mask[i] = 0 where token i is the pad token, otherwise 1.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

extern const OpSignature kTokenMaskSignature;
Status bind_token_mask(BindContext& context, RunFunction* run);
Status bind_token_mask_vulkan(VulkanBindContext& context);

}  // namespace oxbow
