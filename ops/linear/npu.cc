// Dense layers for accelerators: int8 rows and weights go there, what comes back is finished here.

#include "ops/linear/linear.h"
#include "runtime/device/npu/npu_op.h"
#include "schema/model_generated.h"

namespace oxbow {

Status bind_linear_npu(NpuBindContext& context) {
  BindContext& step = context.step();
  const Tensor x = step.input(0), weight = step.input(1);
  // Others have scales inside a row's sum, or none.
  if (x.type != DataType::kI8 || weight.type != DataType::kI8) return Status::kOk;
  const auto scale = step.step().options_as_LinearOptions()->output_scale();
  context.serve({x, step.output_or_caller(0), weight.rows, scale.has_value(), finish_linear});
  return Status::kOk;
}

}  // namespace oxbow
