#include "ops/common/vulkan_rows.h"
#include "ops/gru_gate/gru_gate.h"

namespace oxbow {

OXB_SHADER(gru_gate);

Status bind_gru_gate_vulkan(VulkanBindContext& context) {
  return bind_elements(context, shader_gru_gate,
                       {context.in(0), context.in(1), context.in(2), context.out(0)},
                       {context.output(0).width});
}

}  // namespace oxbow
