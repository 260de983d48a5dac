#include "ops/common/vulkan_rows.h"
#include "ops/convolution/convolution.h"
#include "schema/model_generated.h"

namespace oxbow {

OXB_SHADER(convolution);
OXB_SHADER(convolution_taps);

namespace {

struct Params {
  Tensor y;
  /// -1: there is no memory.
  int32_t ring;
  uint32_t heads;
  bool dynamic;
};

Status prepare_convolution(RunContext& context, const void* params,
                           std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  const uint32_t rows = context.rows(p.y);
  // The softmax, if there is one, goes first.
  if (dispatches.size() == 2) {
    const uint64_t filters = uint64_t{rows == 0 || p.dynamic ? rows : 1} * p.heads;
    OXB_TRY(spread_elements(context, filters, &dispatches[0]));
  }
  const RingPosition ring = p.ring < 0 ? RingPosition{} : context.rings[p.ring];
  DispatchValues& dispatch = dispatches.back();
  dispatch.values[1] = rows;
  dispatch.values[2] = ring.count;
  dispatch.values[3] = ring.head;
  return spread_elements(context, uint64_t{rows} * p.y.width, &dispatch);
}

}  // namespace

Status bind_convolution_vulkan(VulkanBindContext& context) {
  const auto& options = *context.step().options_as_ConvolutionOptions();
  const Tensor x = context.input(0), taps = context.input(1), y = context.output(0);
  const Tensor memory = options.has_memory() ? context.input(2) : x;
  const size_t bias = options.has_bias() ? context.input_count() - 1 : 0;
  for (const Tensor& tensor : {x, taps, memory, y}) {
    if (!fits_32_bits(tensor)) return Status::kOk;
  }
  context.params<Params>() = {y, options.has_memory() ? memory.ring : -1, options.heads(),
                              options.dynamic()};
  context.prepare(prepare_convolution);
  VulkanOperand filters = context.in(1);
  if (options.softmax()) {
    const uint64_t bytes = uint64_t{taps.rows} * taps.width * sizeof(float);
    context.request_scratch(bytes);
    filters = context.scratch(0, bytes);
    OXB_TRY(context.dispatch(shader_convolution_taps, {context.in(1), filters}, {options.taps()}));
  }
  const auto memory_stride = static_cast<uint32_t>(memory.stride() / 4);
  return context.dispatch(
      shader_convolution,
      {context.in(0), filters, context.in(options.has_memory() ? 2 : 0), context.out(0),
       context.in(bias)},
      {x.width, options.heads(), options.taps(), options.left(), options.dynamic(), memory_stride,
       memory.scale_groups, scale_word(memory), options.has_bias()});
}

}  // namespace oxbow
