#include "ops/common/vulkan_rows.h"
#include "ops/rope/rope.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(rope);

Status bind_rope_vulkan(VulkanBindContext& context) {
  const schema::Step& step = context.step();
  // Threads read each other's elements: no turning in place.
  if (step.inputs()->Get(0) == step.outputs()->Get(0)) return Status::kOk;
  const auto& options = *step.options_as_RopeOptions();
  return bind_row_output(
      context, shader_rope, {context.in(0), context.in(1)},
      {context.input(0).width / options.heads(), context.input(1).width, options.adjacent()});
}

}  // namespace oxbow
