#include <algorithm>

#include "ops/common/vulkan_rows.h"
#include "ops/rope_angles/rope_angles.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(rope_angles);

namespace {

struct Params {
  Tensor y;
  uint64_t last;
};

Status prepare_rope_angles(RunContext& context, const void* params,
                           std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  const uint64_t last = p.last == 0 ? UINT64_MAX : p.last;
  const uint64_t first = std::min(context.position, last);
  dispatches[0].values[1] = static_cast<uint32_t>(first);
  dispatches[0].values[2] = static_cast<uint32_t>(first >> 32);
  dispatches[0].values[3] = static_cast<uint32_t>(std::min<uint64_t>(last - first, UINT32_MAX));
  return spread_elements(context, uint64_t{context.rows(p.y)} * (p.y.width / 2), &dispatches[0]);
}

}  // namespace

Status bind_rope_angles_vulkan(VulkanBindContext& context) {
  const Tensor y = context.output(0);
  if (!fits_32_bits(y)) return Status::kOk;
  context.params<Params>() = {y, context.step().options_as_RopeAnglesOptions()->last()};
  context.prepare(prepare_rope_angles);
  // The CPU rounds a double, the shader a fixed-point number.
  context.allow_error(0x1p-24f);
  return context.dispatch(shader_rope_angles, {context.out(0), context.in(0)}, {y.width / 2});
}

}  // namespace oxbow
