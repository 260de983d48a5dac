#include "ops/ring_evict/ring_evict.h"
#include "runtime/device/vulkan/vulkan_op.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(ring_evict);

namespace {

constexpr uint32_t kGroup = 64;

Status prepare_ring_evict(RunContext& context, const void* raw_params,
                          std::span<DispatchValues> dispatches) {
  const auto& params = *static_cast<const RingEvictParams*>(raw_params);
  const RingPosition ring = context.rings[params.memory.ring];
  const EvictedRows rows = find_evicted_rows(params, ring.count, context.rows(params.rows));
  OXB_TRY(context.set_rows(params.groups, static_cast<uint32_t>(rows.groups)));
  const uint64_t elements = rows.groups * params.groups.width;
  dispatches[0].values[0] = static_cast<uint32_t>(elements);
  dispatches[0].values[1] = static_cast<uint32_t>(rows.padding);
  dispatches[0].values[2] = ring.head;
  dispatches[0].values[3] = ring.count;
  return spread_groups(context, ceil_div(elements, kGroup), &dispatches[0]);
}

}  // namespace

Status bind_ring_evict_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_RingEvictOptions();
  const Tensor rows = context.input(0), memory = context.input(1), groups = context.output(0);
  if (!fits_32_bits(rows) || !fits_32_bits(memory) || !fits_32_bits(groups)) return Status::kOk;
  auto& params = context.params<RingEvictParams>();
  params.rows = rows;
  params.memory = memory;
  params.groups = groups;
  params.group = options.group();
  params.pad_front = options.pad_front();
  params.only_full = options.only_full();
  params.all = options.all();
  context.prepare(prepare_ring_evict);
  const bool is_i8 = memory.type == DataType::kI8;
  return context.dispatch(
      shader_ring_evict, {context.out(0), context.in(0), context.in(1)},
      {memory.width, memory.rows, is_i8 ? static_cast<uint32_t>(memory.stride() / 4) : 0,
       is_i8 ? scale_word(memory) : 0});
}

}  // namespace oxbow
