#include "ops/common/vulkan_rows.h"
#include "ops/feature_map/feature_map.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(feature_map);

namespace {

struct Params {
  Tensor x;
  uint32_t heads;
};

Status prepare_feature_map(RunContext& context, const void* params,
                           std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  return spread_elements(context, uint64_t{context.rows(p.x)} * p.heads, &dispatches[0]);
}

}  // namespace

Status bind_feature_map_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_FeatureMapOptions();
  const Tensor x = context.input(0);
  if (!fits_32_bits(x) || !fits_32_bits(context.output(0))) return Status::kOk;
  const float epsilon = options.epsilon();
  context.params<Params>() = {x, options.heads()};
  context.prepare(prepare_feature_map);
  return context.dispatch(
      shader_feature_map, {context.in(0), context.out(0)},
      {x.width / options.heads(), options.order(), std::bit_cast<uint32_t>(epsilon)});
}

}  // namespace oxbow
