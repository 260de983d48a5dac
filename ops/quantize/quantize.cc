#include "ops/quantize/quantize.h"

#include "ops/common/checks.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x, y;
  QuantizeKernel kernel;
};

Status run_quantize(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  parallel_for(context.pool, context.rows(p.x),
               [&](size_t row, size_t) { quantize_into(p.kernel, p.x.f32(row), y, row); });
  return Status::kOk;
}

}  // namespace

QuantizeKernel pick_quantize_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/quantize/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

Status bind_quantize(BindContext& context, RunFunction* run) {
  OXB_TRY(check_counts(context, 1, 1));
  const Tensor x = context.input(0);
  const Tensor y = context.output(0);
  OXB_TRY(check_f32(context, x));
  OXB_TRY(check_type(context, y, DataType::kI8));
  OXB_TRY(check_f32_or_i8(context, y));
  OXB_TRY(check_width(context, y, x.width));
  OXB_TRY(check_same_rows(context, x, y));

  auto& p = context.params<Params>();
  p = {x, y, pick_quantize_kernel(context.reference_only())};
  *run = run_quantize;
  return Status::kOk;
}

}  // namespace oxbow
