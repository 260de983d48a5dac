#include "ops/common/row_output.h"

namespace oxbow {

Status bind_row_output(BindContext& context, const Tensor& y, RowOutput* output) {
  *output = {y, pick_quantize_kernel(context.reference_only()), 0};
  if (y.type == DataType::kF32) return Status::kOk;
  // Whole cache lines for each thread, so that no two share one.
  output->scratch_stride = round_up(y.width, kTensorAlignment / sizeof(float));
  uint64_t bytes = 0;
  if (!checked_mul(output->scratch_stride * sizeof(float), context.threads(), &bytes) ||
      bytes > SIZE_MAX / 2) {
    return context.fail("needs more scratch than there is address space");
  }
  context.request_scratch(bytes);
  return Status::kOk;
}

}  // namespace oxbow
