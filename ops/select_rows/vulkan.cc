#include "ops/common/vulkan_rows.h"
#include "ops/select_rows/select_rows.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(seen_rows);
OXB_SHADER(select_rows);

namespace {

struct Params {
  Tensor x, y;
  /// Scales included.
  uint32_t row_words;
};

Status prepare_select_rows(RunContext& context, const void* params,
                           std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  const uint32_t rows = context.rows(p.x);
  dispatches[0].values[0] = rows;
  OXB_TRY(spread_groups(context, rows == 0 ? 0 : 1, &dispatches[0]));
  dispatches[1].values[1] = 0;
  return spread_elements(context, uint64_t{rows} * p.row_words, &dispatches[1]);
}

Status finish_select_rows(RunContext& context, const void* params,
                          std::span<const DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  const uint32_t selected = dispatches[1].values[1], rows = context.rows(p.x);
  if (selected > rows) {
    return fail(context.error, Status::kInternal,
                "the Vulkan device selected %u rows of %u: use the backend cpu", selected, rows);
  }
  return context.set_rows(p.y, selected);
}

}  // namespace

Status bind_select_rows_vulkan(VulkanBindContext& context) {
  const Tensor x = context.input(0), mask = context.input(1), y = context.output(0);
  // Rows that move inside one tensor need an order that threads do not have.
  const schema::Step& step = context.step();
  if (step.inputs()->Get(0) == step.outputs()->Get(0)) return Status::kOk;
  if (!fits_32_bits(x) || !fits_32_bits(mask) || !fits_32_bits(y)) return Status::kOk;
  const auto row_words = static_cast<uint32_t>(x.stride() / 4);
  context.params<Params>() = {x, y, row_words + x.scale_groups};
  context.prepare(prepare_select_rows);
  context.finish(finish_select_rows);
  const uint64_t seen_bytes = uint64_t{mask.rows} * 8;
  context.request_scratch(seen_bytes);
  const VulkanOperand seen = context.scratch(0, seen_bytes);
  OXB_TRY(context.dispatch(shader_seen_rows, {seen, context.in(1)}, {}));
  return context.dispatch(shader_select_rows, {context.in(0), context.in(1), seen, context.out(0)},
                          {row_words, x.scale_groups, scale_word(x), scale_word(y)});
}

}  // namespace oxbow
