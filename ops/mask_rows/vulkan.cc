#include "ops/common/vulkan_rows.h"
#include "ops/mask_rows/mask_rows.h"

namespace oxbow {

OXB_SHADER(mask_rows);

Status bind_mask_rows_vulkan(VulkanBindContext& context) {
  return bind_elements(context, shader_mask_rows, {context.in(0), context.in(1), context.out(0)},
                       {context.output(0).width});
}

}  // namespace oxbow
