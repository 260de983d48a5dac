#include "ops/common/vulkan_rows.h"
#include "ops/merge_rows/merge_rows.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(merge_rows);
OXB_SHADER(seen_rows);

namespace {

Status prepare_merge_rows(RunContext& context, const void* params,
                          std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const MergeRowsParams*>(params);
  const uint32_t rows = context.rows(p.x);
  dispatches[0].values[0] = rows;
  OXB_TRY(spread_groups(context, rows == 0 ? 0 : 1, &dispatches[0]));
  dispatches[1].values[1] = 0;
  dispatches[1].values[2] = context.rows(p.rows);
  return spread_elements(context, uint64_t{rows} * p.y.width, &dispatches[1]);
}

Status finish_merge_rows(RunContext& context, const void* params,
                         std::span<const DispatchValues> dispatches) {
  const auto& p = *static_cast<const MergeRowsParams*>(params);
  return check_marked_rows(context, p, dispatches[1].values[1]);
}

}  // namespace

Status bind_merge_rows_vulkan(VulkanBindContext& context) {
  const Tensor x = context.input(0), rows = context.input(1), mask = context.input(2);
  const Tensor y = context.output(0);
  // Rows that move inside one tensor need an order that threads do not have.
  const schema::Step& step = context.step();
  if (step.inputs()->Get(1) == step.outputs()->Get(0)) return Status::kOk;
  if (y.width == 0 || !fits_32_bits(y) || !fits_32_bits(rows)) return Status::kOk;
  context.params<MergeRowsParams>() = {x, rows, mask, y};
  context.prepare(prepare_merge_rows);
  context.finish(finish_merge_rows);
  const uint64_t seen_bytes = uint64_t{mask.rows} * 8;
  context.request_scratch(seen_bytes);
  const VulkanOperand seen = context.scratch(0, seen_bytes);
  OXB_TRY(context.dispatch(shader_seen_rows, {seen, context.in(2)}, {}));
  return context.dispatch(shader_merge_rows,
                          {context.in(0), context.in(1), context.in(2), seen, context.out(0)},
                          {y.width});
}

}  // namespace oxbow
