#include "ops/take_rows/take_rows.h"
#include "runtime/device/vulkan/vulkan_op.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(take_rows);

namespace {

constexpr uint32_t kGroup = 64;

struct Params {
  TakenRows rows;
  uint32_t groups;
};

Status prepare_take_rows(RunContext& context, const void* params,
                         std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  uint32_t first = 0, wanted = 0;
  OXB_TRY(find_taken_rows(context, p.rows, &first, &wanted));
  dispatches[0].values[0] = wanted;
  dispatches[0].values[1] = first;
  return spread_groups(context, wanted == 0 ? 0 : p.groups, &dispatches[0]);
}

}  // namespace

Status bind_take_rows_vulkan(VulkanBindContext& context) {
  const Tensor x = context.input(0), y = context.output(0);
  if (!fits_32_bits(x) || !fits_32_bits(y)) return Status::kOk;
  // Rows that move inside one tensor need an order that threads do not have.
  const schema::Step& step = context.step();
  if (step.inputs()->Get(0) == step.outputs()->Get(0)) return Status::kOk;
  const auto row_words = static_cast<uint32_t>(x.stride() / 4);
  context.params<Params>() = {{x, y, takes_from_start(step)},
                              static_cast<uint32_t>(ceil_div(row_words + x.scale_groups, kGroup))};
  context.prepare(prepare_take_rows);
  return context.dispatch(shader_take_rows, {context.in(0), context.out(0)},
                          {row_words, x.scale_groups, scale_word(x), scale_word(y)});
}

}  // namespace oxbow
