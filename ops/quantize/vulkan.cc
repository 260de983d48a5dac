#include "ops/common/vulkan_rows.h"
#include "ops/quantize/quantize.h"

namespace oxbow {

OXB_SHADER(quantize);

Status bind_quantize_vulkan(VulkanBindContext& context) {
  return bind_row_output(context, shader_quantize, {context.in(0)}, {});
}

}  // namespace oxbow
