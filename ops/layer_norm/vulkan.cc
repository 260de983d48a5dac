#include "ops/common/vulkan_rows.h"
#include "ops/layer_norm/layer_norm.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(layer_norm);

Status bind_layer_norm_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_LayerNormOptions();
  const float epsilon = options.epsilon();
  if (options.deviation()) return Status::kOk;
  const bool weighted = context.input_count() == 3;
  return bind_norm_output(
      context, shader_layer_norm,
      {context.in(0), context.in(weighted ? 1 : 0), context.in(weighted ? 2 : 0)}, options.groups(),
      std::bit_cast<uint32_t>(epsilon));
}

}  // namespace oxbow
