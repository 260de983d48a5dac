#include "ops/common/vulkan_rows.h"
#include "ops/pad_rows/pad_rows.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(pad_rows);

namespace {

Status prepare_pad_rows(RunContext& context, const void* params,
                        std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const PadRowsParams*>(params);
  uint32_t all = 0;
  OXB_TRY(count_padded_rows(context, p, &all));
  dispatches[0].values[1] = context.rows(p.x);
  return spread_elements(context, all, &dispatches[0]);
}

}  // namespace

Status bind_pad_rows_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_PadRowsOptions();
  const Tensor x = context.input(0), y = context.output(0);
  if (!fits_32_bits(y)) return Status::kOk;
  context.params<PadRowsParams>() = {x, y, options.multiple(), options.above(), options.value()};
  context.prepare(prepare_pad_rows);
  return context.dispatch(shader_pad_rows, {context.in(0), context.out(0)},
                          {static_cast<uint32_t>(options.value())});
}

}  // namespace oxbow
