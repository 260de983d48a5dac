#include "ops/common/vulkan_rows.h"
#include "ops/multiply/multiply.h"

namespace oxbow {

OXB_SHADER(multiply);

Status bind_multiply_vulkan(VulkanBindContext& context) {
  return bind_row_output(context, shader_multiply, {context.in(0), context.in(1)}, {});
}

}  // namespace oxbow
