#include "ops/common/vulkan_rows.h"
#include "ops/layer_norm/layer_norm.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(layer_norm);

Status bind_layer_norm_vulkan(VulkanBindContext& context) {
  const float epsilon = context.step().options_as_LayerNormOptions()->epsilon();
  return bind_row_output(context, shader_layer_norm, {context.in(0), context.in(1), context.in(2)},
                         {std::bit_cast<uint32_t>(epsilon)});
}

}  // namespace oxbow
