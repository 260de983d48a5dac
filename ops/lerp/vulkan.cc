#include "ops/common/vulkan_rows.h"
#include "ops/lerp/lerp.h"

namespace oxbow {

OXB_SHADER(lerp);

Status bind_lerp_vulkan(VulkanBindContext& context) {
  const Tensor mix = context.input(2);
  const bool one_mix = mix.rows == 1 && mix.rows_symbol < 0;
  return bind_elements(context, shader_lerp,
                       {context.in(0), context.in(1), context.in(2), context.out(0)},
                       {mix.width, one_mix});
}

}  // namespace oxbow
