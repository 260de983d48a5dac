#include <algorithm>

#include "ops/common/vulkan_rows.h"
#include "ops/concat_rows/concat_rows.h"

namespace oxbow {

// Of ops/slice_columns, once for each input, whose rows are one long row of the output.
OXB_SHADER(copy_columns);

namespace {

struct Params {
  uint32_t elements[kMaxConcatRowsInputs];
};

Status prepare_concat_rows(RunContext& context, const void* params,
                           std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  for (size_t i = 0; i < dispatches.size(); ++i) {
    OXB_TRY(spread_elements(context, p.elements[i], &dispatches[i]));
  }
  return Status::kOk;
}

}  // namespace

Status bind_concat_rows_vulkan(VulkanBindContext& context) {
  const Tensor y = context.output(0);
  // No input is larger.
  if (!fits_32_bits(y)) return Status::kOk;
  auto& p = context.params<Params>();
  context.prepare(prepare_concat_rows);
  uint32_t first = 0;
  for (size_t i = 0; i < context.input_count(); ++i) {
    const uint32_t elements = context.input(i).rows * y.width;
    p.elements[i] = elements;
    OXB_TRY(context.dispatch(shader_copy_columns, {context.in(i), context.out(0)},
                             {std::max(elements, 1u), elements, 0, 0, first}));
    first += elements;
  }
  return Status::kOk;
}

}  // namespace oxbow
