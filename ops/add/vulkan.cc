#include "ops/add/add.h"
#include "runtime/vulkan_op.h"

namespace oxbow {

OXB_SHADER(add);

namespace {

constexpr uint32_t kGroup = 64;

struct Params {
  Tensor y;
};

Status prepare_add(RunContext& context, const void* params, std::span<VulkanSlot> slots) {
  const auto& p = *static_cast<const Params*>(params);
  const uint64_t count = uint64_t{context.rows(p.y)} * p.y.width;
  slots[0].values[0] = static_cast<uint32_t>(count);
  return spread_groups(context, ceil_div(count, kGroup), &slots[0]);
}

}  // namespace

Status bind_add_vulkan(VulkanBindContext& context) {
  const Tensor y = context.output(0);
  if (!fits_32_bits(y)) return Status::kOk;
  context.params<Params>() = {y};
  context.prepare(prepare_add);
  return context.dispatch(shader_add, {context.in(0), context.in(1), context.out(0)}, {});
}

}  // namespace oxbow
