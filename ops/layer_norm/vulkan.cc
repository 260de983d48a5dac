#include "ops/common/vulkan_rows.h"
#include "ops/layer_norm/layer_norm.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(layer_norm);

Status bind_layer_norm_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_LayerNormOptions();
  const float epsilon = options.epsilon();
  if (options.groups() != 1 || options.deviation() || context.input_count() != 3) {
    return Status::kOk;
  }
  return bind_row_output(context, shader_layer_norm, {context.in(0), context.in(1), context.in(2)},
                         {std::bit_cast<uint32_t>(epsilon)});
}

}  // namespace oxbow
