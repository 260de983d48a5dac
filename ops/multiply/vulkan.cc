#include "ops/common/broadcast.h"
#include "ops/common/vulkan_rows.h"
#include "ops/multiply/multiply.h"

namespace oxbow {

OXB_SHADER(multiply);

Status bind_multiply_vulkan(VulkanBindContext& context) {
  const Tensor a = context.input(0), b = context.input(1);
  return bind_row_output(context, shader_multiply, {context.in(0), context.in(1)},
                         {a.width / b.width, is_one_row(a, b)});
}

}  // namespace oxbow
