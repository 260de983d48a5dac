#include "ops/common/vulkan_rows.h"
#include "ops/positions/positions.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(positions);

namespace {

struct Params {
  Tensor ids;
  uint32_t wrap;
  /// Where positions end if they do not wrap.
  uint32_t end;
};

Status prepare_positions(RunContext& context, const void* params, std::span<VulkanSlot> slots) {
  const auto& p = *static_cast<const Params*>(params);
  const uint32_t rows = context.rows(p.ids);
  uint64_t position = context.position;
  if (p.wrap != 0) {
    position %= p.wrap;
  } else if (position >= p.end || rows > p.end - position) {
    const uint64_t first = position < p.end ? p.end : position;
    return fail_position(context, static_cast<uint32_t>(first - position), first, p.end);
  }
  slots[0].values[1] = static_cast<uint32_t>(position);
  return spread_elements(context, rows, &slots[0]);
}

}  // namespace

Status bind_positions_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_PositionsOptions();
  const Tensor ids = context.output(0);
  // How many tokens are no padding, and so whether the positions last, shows in the data alone.
  if (options.pad_token() >= 0 || !fits_32_bits(ids)) return Status::kOk;
  context.params<Params>() = {ids, options.wrap(), ids.limit - options.offset()};
  context.prepare(prepare_positions);
  return context.dispatch(shader_positions, {context.out(0)}, {options.offset(), options.wrap()});
}

}  // namespace oxbow
