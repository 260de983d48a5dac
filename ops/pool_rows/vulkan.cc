#include "ops/common/vulkan_rows.h"
#include "ops/pool_rows/pool_rows.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(pool_rows);

namespace {

Status prepare_pool_rows(RunContext& context, const void* params,
                         std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const PoolRowsParams*>(params);
  PoolRowsCut cuts[2];
  OXB_TRY(cut_pool_rows(context, p, cuts));
  for (size_t s = 0; s < 2; ++s) {
    dispatches[0].values[1 + 3 * s] = static_cast<uint32_t>(cuts[s].rows);
    dispatches[0].values[2 + 3 * s] = static_cast<uint32_t>(cuts[s].group);
    dispatches[0].values[3 + 3 * s] = static_cast<uint32_t>(cuts[s].groups);
  }
  const uint64_t groups = uint64_t{cuts[0].groups} + cuts[1].groups;
  return spread_elements(context, groups * p.y.width, &dispatches[0]);
}

}  // namespace

Status bind_pool_rows_vulkan(VulkanBindContext& context) {
  PoolRowsParams p = read_pool_rows(*context.step().options_as_PoolRowsOptions());
  p.y = context.output(0);
  for (size_t s = 0; s < p.sources; ++s) p.x[s] = context.input(s);
  // The data of a mask or a shape say how many groups there are.
  if (p.has_mask || p.has_shape || !fits_32_bits(p.y)) return Status::kOk;
  for (size_t i = 0; i < context.input_count(); ++i) {
    if (!fits_32_bits(context.input(i))) return Status::kOk;
  }
  if (p.has_factors) p.factors = context.input(p.sources);
  context.params<PoolRowsParams>() = p;
  context.prepare(prepare_pool_rows);
  return context.dispatch(shader_pool_rows,
                          {context.in(0), context.in(p.sources - 1),
                           context.in(p.has_factors ? p.sources : 0), context.out(0)},
                          {p.y.width, p.front, p.mean, p.has_factors});
}

}  // namespace oxbow
