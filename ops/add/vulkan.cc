#include "ops/add/add.h"
#include "ops/common/broadcast.h"
#include "ops/common/vulkan_rows.h"

namespace oxbow {

OXB_SHADER(add);

Status bind_add_vulkan(VulkanBindContext& context) {
  const Tensor a = context.input(0), b = context.input(1);
  return bind_elements(context, shader_add, {context.in(0), context.in(1), context.out(0)},
                       {a.width, a.width / b.width, is_one_row(a, b)});
}

}  // namespace oxbow
