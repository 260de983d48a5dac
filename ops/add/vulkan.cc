#include "ops/add/add.h"
#include "ops/common/broadcast.h"
#include "ops/common/vulkan_rows.h"

namespace oxbow {

OXB_SHADER(add);

Status bind_add_vulkan(VulkanBindContext& context) {
  if (!same_shape(context.input(0), context.input(1))) return Status::kOk;
  return bind_elements(context, shader_add, {context.in(0), context.in(1), context.out(0)}, {});
}

}  // namespace oxbow
