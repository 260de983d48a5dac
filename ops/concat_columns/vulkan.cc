#include "ops/common/vulkan_rows.h"
#include "ops/concat_columns/concat_columns.h"

namespace oxbow {

// Of ops/slice_columns, once for each input.
OXB_SHADER(copy_columns);

namespace {

struct Params {
  Tensor y;
  uint32_t widths[kMaxConcatInputs];
};

Status prepare_concat_columns(RunContext& context, const void* params,
                              std::span<DispatchValues> dispatches) {
  const auto& p = *static_cast<const Params*>(params);
  const uint64_t rows = context.rows(p.y);
  for (size_t i = 0; i < dispatches.size(); ++i) {
    OXB_TRY(spread_elements(context, rows * p.widths[i], &dispatches[i]));
  }
  return Status::kOk;
}

}  // namespace

Status bind_concat_columns_vulkan(VulkanBindContext& context) {
  const Tensor y = context.output(0);
  // No input is wider.
  if (!fits_32_bits(y)) return Status::kOk;
  auto& p = context.params<Params>();
  p.y = y;
  context.prepare(prepare_concat_columns);
  uint32_t first = 0;
  for (size_t i = 0; i < context.input_count(); ++i) {
    const uint32_t width = context.input(i).width;
    p.widths[i] = width;
    OXB_TRY(context.dispatch(shader_copy_columns, {context.in(i), context.out(0)},
                             {width, width, 0, y.width, first}));
    first += width;
  }
  return Status::kOk;
}

}  // namespace oxbow
