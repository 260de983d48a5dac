#include "ops/common/broadcast.h"
#include "ops/common/vulkan_rows.h"
#include "ops/multiply/multiply.h"

namespace oxbow {

OXB_SHADER(multiply);

Status bind_multiply_vulkan(VulkanBindContext& context) {
  if (!same_shape(context.input(0), context.input(1))) return Status::kOk;
  return bind_row_output(context, shader_multiply, {context.in(0), context.in(1)}, {});
}

}  // namespace oxbow
