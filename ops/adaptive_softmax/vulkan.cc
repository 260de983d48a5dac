#include <algorithm>

#include "ops/adaptive_softmax/adaptive_softmax.h"
#include "ops/common/vulkan_rows.h"

namespace oxbow {

OXB_SHADER(adaptive_softmax);

namespace {

Status prepare_adaptive_softmax(RunContext& context, const void* params,
                                std::span<DispatchValues> dispatches) {
  const uint32_t rows = context.rows(static_cast<const VulkanRowsParams*>(params)->y);
  for (DispatchValues& dispatch : dispatches) {
    dispatch.values[0] = rows;
    OXB_TRY(spread_groups(context, rows, &dispatch));
  }
  return Status::kOk;
}

}  // namespace

Status bind_adaptive_softmax_vulkan(VulkanBindContext& context) {
  const Tensor head = context.input(0), y = context.output(0);
  // No cluster is wider than the output.
  if (!fits_32_bits(head) || !fits_32_bits(y)) return Status::kOk;
  // What it takes its row count from: the output may be the caller's.
  context.params<VulkanRowsParams>() = {head};
  context.prepare(prepare_adaptive_softmax);
  const auto clusters = static_cast<uint32_t>(context.input_count() - 1);
  const uint64_t base_bytes = uint64_t{head.rows} * std::max(clusters, 1u) * sizeof(float);
  context.request_scratch(base_bytes);
  const VulkanOperand bases = context.scratch(0, base_bytes);
  uint32_t first = 0;
  for (uint32_t i = 0; i <= clusters; ++i) {
    const uint32_t width = context.input(i).width;
    const uint32_t kept = i == 0 ? width - clusters : width;
    const uint32_t base = i == 0 ? clusters : i - 1;
    OXB_TRY(context.dispatch(shader_adaptive_softmax, {context.in(i), context.out(0), bases},
                             {width, kept, y.width, first, clusters, base}));
    first += kept;
  }
  return Status::kOk;
}

}  // namespace oxbow
