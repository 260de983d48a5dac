#include <algorithm>

#include "ops/common/vulkan_rows.h"
#include "ops/scan/scan.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(scan);

namespace {

struct Params {
  Tensor x;
  /// Of the past; -1: there is none.
  int32_t ring;
  uint32_t last_position;
};

Status prepare_scan(RunContext& context, const void* params, std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  const RingPosition ring = p.ring < 0 ? RingPosition{} : context.rings[p.ring];
  DispatchValues& dispatch = dispatches[0];
  dispatch.values[1] = context.rows(p.x);
  dispatch.values[2] = context.position == 0;
  // Later ones are not told apart.
  dispatch.values[3] = static_cast<uint32_t>(std::min<uint64_t>(context.position, p.last_position));
  dispatch.values[4] = ring.head;
  dispatch.values[5] = ring.count;
  return spread_elements(context, p.x.width, &dispatch);
}

}  // namespace

Status bind_scan_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_ScanOptions();
  const size_t past = options.window() == 1 ? 0 : 2;
  const size_t states = options.rule() == schema::ScanRule::WeightedAverage ? 3 : 1;
  const size_t outputs = options.rule() == schema::ScanRule::ExponentialGates ? 3 : 1;
  const size_t inputs = context.input_count() - past - states;
  for (size_t i = 0; i < context.input_count(); ++i) {
    if (!fits_32_bits(context.input(i))) return Status::kOk;
  }
  const Tensor x = context.input(0);
  const bool averages = options.rule() == schema::ScanRule::WeightedAverage;
  const bool selects = options.rule() == schema::ScanRule::Selective;
  const uint32_t last = averages ? context.input(3).rows - 1 : 0;
  context.params<Params>() = {x, past == 0 ? -1 : context.input(inputs).ring, last};
  context.prepare(prepare_scan);
  // What a rule does not have is bound to something that it has, and not touched.
  VulkanOperand operands[kScanStates + kScanOutputs + kScanInputs + 2];
  size_t next = 0;
  for (size_t i = 0; i < kScanStates; ++i)
    operands[next++] = context.out(outputs + (i < states ? i : 0));
  for (size_t i = 0; i < kScanOutputs; ++i) operands[next++] = context.out(i < outputs ? i : 0);
  for (size_t i = 0; i < kScanInputs; ++i) operands[next++] = context.in(i < inputs ? i : 0);
  for (size_t i = 0; i < 2; ++i) operands[next++] = context.in(past == 0 ? 0 : inputs + i);
  const uint32_t constants[] = {static_cast<uint32_t>(options.rule()), x.width,
                                selects ? context.input(2).width : 0, options.window(), last};
  return context.dispatch(shader_scan, std::span<const VulkanOperand>(operands),
                          std::span<const uint32_t>(constants));
}

}  // namespace oxbow
