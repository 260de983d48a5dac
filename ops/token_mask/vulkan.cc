#include "ops/common/vulkan_rows.h"
#include "ops/token_mask/token_mask.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(token_mask);

Status bind_token_mask_vulkan(VulkanBindContext& context) {
  return bind_elements(context, shader_token_mask, {context.in(0), context.out(0)},
                       {context.step().options_as_TokenMaskOptions()->pad_token()});
}

}  // namespace oxbow
