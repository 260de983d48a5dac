#include "ops/multiply/multiply.h"

#include "ops/common/checks.h"
#include "ops/common/row_output.h"

namespace oxbow {
namespace {

struct Params {
  Tensor a, b;
  RowOutput y;
  MultiplyKernel kernel;
};

Status run_multiply(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  parallel_for(context.pool, context.rows(p.a), [&](size_t row, size_t worker) {
    write_row(context, p.y, row, worker,
              [&](float* y) { p.kernel(p.a.f32(row), p.b.f32(row), p.a.width, y); });
  });
  return Status::kOk;
}

MultiplyKernel pick_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/multiply/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

}  // namespace

Status bind_multiply(BindContext& context, RunFunction* run) {
  OXB_TRY(check_counts(context, 2, 1));
  const Tensor a = context.input(0);
  const Tensor b = context.input(1);
  const Tensor y = context.output(0);
  OXB_TRY(check_f32(context, a));
  OXB_TRY(check_f32(context, b));
  for (const Tensor& tensor : {b, y}) {
    OXB_TRY(check_width(context, tensor, a.width));
    OXB_TRY(check_same_rows(context, a, tensor));
  }
  auto& p = context.params<Params>();
  p.a = a;
  p.b = b;
  p.kernel = pick_kernel(context.reference_only());
  OXB_TRY(bind_row_output(context, y, &p.y));
  *run = run_multiply;
  return Status::kOk;
}

}  // namespace oxbow
