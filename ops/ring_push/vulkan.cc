#include "ops/ring_push/ring_push.h"
#include "runtime/device/vulkan/vulkan_op.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(ring_push_copy);
OXB_SHADER(ring_push_quantize);

namespace {

/// As many as ops/common/vulkan/row_output.glsl has room for.
constexpr uint32_t kMaxScaleGroups = 256;

Status prepare_ring_push(RunContext& context, const void* raw_params,
                         std::span<DispatchValues> dispatches) {
  const auto& params = *static_cast<const RingPushParams*>(raw_params);
  const RingPushPlan plan = plan_ring_push(context, params);
  for (DispatchValues& dispatch : dispatches) {
    dispatch.values[0] = static_cast<uint32_t>(plan.rows);
    dispatch.values[1] = static_cast<uint32_t>(plan.pins);
    dispatch.values[2] = static_cast<uint32_t>(plan.first);
    dispatch.values[3] = plan.before.head;
    dispatch.values[4] = plan.before.count;
    OXB_TRY(spread_groups(context, plan.rows, &dispatch));
  }
  return Status::kOk;
}

bool shader_can(const Tensor& rows, const Tensor& state) {
  return fits_32_bits(rows) && fits_32_bits(state) && state.scale_groups <= kMaxScaleGroups &&
         state.type != DataType::kI4Rows;
}

}  // namespace

Status bind_ring_push_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_RingPushOptions();
  const size_t count = context.input_count();
  for (size_t i = 0; i < count; ++i) {
    if (!shader_can(context.input(i), context.output(i))) return Status::kOk;
  }
  auto& params = context.params<RingPushParams>();
  params.count = count;
  params.group = options.group();
  params.only_full = options.only_full();
  params.first = options.first();
  params.replace = options.replace();
  params.clear = options.clear();
  context.prepare(prepare_ring_push);
  for (size_t i = 0; i < count; ++i) {
    const Tensor rows = params.rows[i] = context.input(i);
    const Tensor state = params.states[i] = context.output(i);
    if (rows.type == DataType::kF32 && state.type == DataType::kI8) {
      OXB_TRY(context.dispatch(
          shader_ring_push_quantize, {context.out(i), context.in(i)},
          {state.width, state.scale_groups, scale_word(state), 0, 0, state.rows, state.pinned}));
    } else {
      OXB_TRY(context.dispatch(shader_ring_push_copy, {context.out(i), context.in(i)},
                               {state.rows, state.pinned, static_cast<uint32_t>(state.stride() / 4),
                                state.scale_groups, scale_word(rows), scale_word(state)}));
    }
  }
  return Status::kOk;
}

}  // namespace oxbow
