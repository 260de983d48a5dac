#include "ops/common/vulkan_rows.h"
#include "ops/positions/positions.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(positions);
OXB_SHADER(positions_padded);

namespace {

struct Params {
  Tensor ids;
  uint32_t wrap;
  /// Where positions end if they do not wrap.
  uint32_t end;
};

Status prepare_positions(RunContext& context, const void* params,
                         std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  const uint32_t rows = context.rows(p.ids);
  uint64_t position = context.position;
  if (p.wrap != 0) {
    position %= p.wrap;
  } else if (position >= p.end || rows > p.end - position) {
    const uint64_t first = position < p.end ? p.end : position;
    return fail_position(context, static_cast<uint32_t>(first - position), first, p.end);
  }
  dispatches[0].values[1] = static_cast<uint32_t>(position);
  return spread_elements(context, rows, &dispatches[0]);
}

/// How many tokens are no padding, and so whether the positions last, shows in the data alone.
Status prepare_padded(RunContext& context, const void* params,
                      std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  const uint64_t position = context.position;
  const bool is_left = position < p.end;
  DispatchValues& dispatch = dispatches[0];
  dispatch.values[0] = context.rows(p.ids);
  dispatch.values[1] = static_cast<uint32_t>(p.wrap != 0 ? position % p.wrap
                                             : is_left   ? position
                                                         : 0);
  dispatch.values[2] = static_cast<uint32_t>(p.wrap != 0 ? UINT32_MAX
                                             : is_left   ? p.end - position
                                                         : 0);
  dispatch.values[3] = 0;
  return spread_groups(context, 1, &dispatch);
}

Status finish_padded(RunContext& context, const void* params,
                     std::span<const DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  const uint32_t failed = dispatches[0].values[3];
  if (failed == 0) return Status::kOk;
  return fail_position(context, failed - 1, context.position + dispatches[0].values[2], p.end);
}

}  // namespace

Status bind_positions_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_PositionsOptions();
  const Tensor ids = context.output(0);
  if (!fits_32_bits(ids) || options.divisor() != 1) return Status::kOk;
  context.params<Params>() = {ids, options.wrap(), ids.limit - options.offset()};
  if (options.pad_token() >= 0) {
    context.prepare(prepare_padded);
    context.finish(finish_padded);
    return context.dispatch(shader_positions_padded, {context.out(0), context.in(0)},
                            {options.offset(), options.wrap(),
                             static_cast<uint32_t>(options.pad_token()), options.pad_position()});
  }
  context.prepare(prepare_positions);
  return context.dispatch(shader_positions, {context.out(0)}, {options.offset(), options.wrap()});
}

}  // namespace oxbow
