#include "ops/quantize/quantize.h"

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

constexpr OpSignature kQuantizeSignature = {
    .inputs = {{.name = "x"}},
    .outputs = {{.name = "y", .types = kI8, .width = Width::of(0), .rows = Rows::of(0)}},
};

QuantizeKernel pick_quantize_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/quantize/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

Status bind_quantize(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kQuantizeSignature));
  const Tensor x = context.input(0);
  const Tensor y = context.output(0);
  auto& p = context.params<Params>();
  p = {x, y, pick_quantize_kernel(context.reference_only())};
  *run = run_quantize;
  return Status::kOk;
}

}  // namespace oxbow
