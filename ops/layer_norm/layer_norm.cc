#include "ops/layer_norm/layer_norm.h"

#include <cmath>

#include "ops/common/checks.h"
#include "ops/common/row_output.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x;
  RowOutput y;
  LayerNormParams norm;
  LayerNormKernel kernel;
};

Status run_layer_norm(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  parallel_for(context.pool, context.rows(p.x), [&](size_t row, size_t worker) {
    write_row(context, p.y, row, worker,
              [&](float* y) { p.kernel(p.x.f32(row), p.x.width, p.norm, y); });
  });
  return Status::kOk;
}

LayerNormKernel pick_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/layer_norm/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

}  // namespace

Status bind_layer_norm(BindContext& context, RunFunction* run) {
  OXB_TRY(check_counts(context, 3, 1));
  const auto* options = context.step().options_as_LayerNormOptions();
  if (options == nullptr) return fail_options(context, "LayerNormOptions");
  const float epsilon = options->epsilon();
  // Positive, so that a row of equal values divides by something.
  if (!std::isfinite(epsilon) || epsilon <= 0) {
    return context.fail("epsilon is %g, expected a positive number", double{epsilon});
  }
  const Tensor x = context.input(0);
  const Tensor weight = context.input(1);
  const Tensor bias = context.input(2);
  const Tensor y = context.output(0);
  OXB_TRY(check_f32(context, x));
  OXB_TRY(check_vector(context, weight, x.width));
  OXB_TRY(check_vector(context, bias, x.width));
  OXB_TRY(check_width(context, y, x.width));
  OXB_TRY(check_same_rows(context, x, y));

  auto& p = context.params<Params>();
  p.x = x;
  p.norm = {weight.f32(), bias.f32(), epsilon};
  p.kernel = pick_kernel(context.reference_only());
  OXB_TRY(bind_row_output(context, y, &p.y));
  *run = run_layer_norm;
  return Status::kOk;
}

}  // namespace oxbow
