#include "ops/activate/activate.h"
#include "ops/common/vulkan_rows.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(activate);

Status bind_activate_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_ActivateOptions();
  return bind_elements(
      context, shader_activate, {context.in(0), context.out(0)},
      {static_cast<uint32_t>(options.activation()), std::bit_cast<uint32_t>(options.limit())});
}

}  // namespace oxbow
