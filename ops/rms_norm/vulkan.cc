#include "ops/common/vulkan_rows.h"
#include "ops/rms_norm/rms_norm.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(rms_norm);

Status bind_rms_norm_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_RmsNormOptions();
  const float epsilon = options.epsilon();
  const size_t weight = context.input_count() == 2 ? 1 : 0;
  return bind_norm_output(context, shader_rms_norm, {context.in(0), context.in(weight)},
                          options.groups(), std::bit_cast<uint32_t>(epsilon));
}

}  // namespace oxbow
