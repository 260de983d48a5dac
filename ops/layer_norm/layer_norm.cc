#include "ops/layer_norm/layer_norm.h"

#include <cmath>

#include "ops/common/checks.h"
#include "ops/quantize/quantize.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x, y;
  LayerNormParams norm;
  LayerNormKernel kernel;
  QuantizeKernel quantize;
  /// Floats of scratch for each thread's float row; I8 output only.
  size_t scratch_stride;
};

Status run_f32(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  parallel_for(context.pool, context.rows(p.x),
               [&](size_t row, size_t) { p.kernel(p.x.f32(row), p.x.width, p.norm, y.f32(row)); });
  return Status::kOk;
}

Status run_i8(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  auto* scratch = reinterpret_cast<float*>(context.scratch);
  parallel_for(context.pool, context.rows(p.x), [&](size_t row, size_t worker) {
    float* values = scratch + worker * p.scratch_stride;
    p.kernel(p.x.f32(row), p.x.width, p.norm, values);
    p.quantize(values, y.width, y.scale_groups, y.i8(row), y.row_scales(row));
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
  OXB_TRY(check_f32_or_i8(context, y));
  OXB_TRY(check_width(context, y, x.width));
  OXB_TRY(check_same_rows(context, x, y));

  auto& p = context.params<Params>();
  p.x = x;
  p.y = y;
  p.norm = {weight.f32(), bias.f32(), epsilon};
  p.kernel = pick_kernel(context.reference_only());
  *run = run_f32;
  if (y.type == DataType::kI8) {
    p.quantize = pick_quantize_kernel(context.reference_only());
    // Whole cache lines for each thread, so that no two share one.
    p.scratch_stride = round_up(x.width, kTensorAlignment / sizeof(float));
    uint64_t bytes = 0;
    if (!checked_mul(p.scratch_stride * sizeof(float), context.threads(), &bytes) ||
        bytes > SIZE_MAX / 2) {
      return context.fail("needs more scratch than there is address space");
    }
    context.request_scratch(bytes);
    *run = run_i8;
  }
  return Status::kOk;
}

}  // namespace oxbow
