#include "ops/lerp/lerp.h"

#include "ops/common/checks.h"

namespace oxbow {
namespace {

struct Params {
  Tensor a, b, mix, y;
  LerpKernel kernel;
  bool one_mix;
};

Status run_lerp(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  parallel_for(context.pool, context.rows(p.a), [&](size_t row, size_t) {
    p.kernel(p.a.f32(row), p.b.f32(row), p.mix.f32(p.one_mix ? 0 : row), p.a.width, y.f32(row));
  });
  return Status::kOk;
}

LerpKernel pick_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/lerp/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

}  // namespace

constexpr OpSignature kLerpSignature = {
    .by_row = true,
    .inputs = {{.name = "a"},
               {.name = "b", .width = Width::of(0), .rows = Rows::of(0)},
               {.name = "mix", .width = Width::of(0)}},
    .outputs = {{.name = "y", .width = Width::of(0), .rows = Rows::of(0)}},
};

Status bind_lerp(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kLerpSignature));
  const Tensor a = context.input(0);
  const Tensor mix = context.input(2);
  const bool one_mix = mix.rows == 1 && mix.rows_symbol < 0;
  if (!one_mix) OXB_TRY(check_same_rows(context, a, mix));
  auto& p = context.params<Params>();
  p = {a, context.input(1), mix, context.output(0), pick_kernel(context.reference_only()), one_mix};
  *run = run_lerp;
  return Status::kOk;
}

}  // namespace oxbow
