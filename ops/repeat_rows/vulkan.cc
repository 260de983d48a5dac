#include "ops/common/vulkan_rows.h"
#include "ops/repeat_rows/repeat_rows.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(repeat_rows);

namespace {

struct Params {
  Tensor x, y;
};

Status prepare_repeat_rows(RunContext& context, const void* params,
                           std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  dispatches[0].values[1] = context.rows(p.x);
  return spread_elements(context, uint64_t{context.rows(p.y)} * p.y.width, &dispatches[0]);
}

}  // namespace

Status bind_repeat_rows_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_RepeatRowsOptions();
  const Tensor x = context.input(0), y = context.output(0);
  // With a shape the data say how many rows there are.
  if (options.has_shape() || !fits_32_bits(x) || !fits_32_bits(y)) return Status::kOk;
  // Rows that move inside one tensor need an order that threads do not have.
  const schema::Step& step = context.step();
  if (step.inputs()->Get(0) == step.outputs()->Get(0)) return Status::kOk;
  context.params<Params>() = {x, y};
  context.prepare(prepare_repeat_rows);
  const int64_t offset = options.offset();
  return context.dispatch(shader_repeat_rows, {context.in(0), context.out(0)},
                          {y.width, options.group(), static_cast<uint32_t>(offset < 0 ? 0 : offset),
                           static_cast<uint32_t>(offset < 0 ? -offset : 0)});
}

}  // namespace oxbow
