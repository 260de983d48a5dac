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
  const auto* options = step.step().options_as_LinearOptions();
  NpuStep served;
  served.x = x;
  served.y = step.output_or_caller(0);
  served.channels = weight.rows;
  served.has_codes = options->output_scale().has_value() && x.static_scale != 0.0f;
  served.may_lead = served.has_codes && served.y.type == DataType::kI8 &&
                    served.y.static_scale != 0.0f && served.y.hadamard == 0 &&
                    !options->has_residual();
  served.finish = finish_linear;
  served.formula = formula_linear;
  context.serve(served);
  return Status::kOk;
}

}  // namespace oxbow
