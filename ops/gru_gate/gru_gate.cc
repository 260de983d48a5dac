#include "ops/gru_gate/gru_gate.h"

namespace oxbow {
namespace {

struct Params {
  Tensor gi, gh, x, y;
  GruGateKernel kernel;
};

Status run_gru_gate(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  parallel_for(context.pool, context.rows(p.x), [&](size_t row, size_t) {
    p.kernel(p.gi.f32(row), p.gh.f32(row), p.x.f32(row), p.x.width, y.f32(row));
  });
  return Status::kOk;
}

GruGateKernel pick_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/gru_gate/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

}  // namespace

constexpr OpSignature kGruGateSignature = {
    .by_row = true,
    .inputs = {{.name = "input_gates", .width = Width::times(3, 2), .rows = Rows::of(2)},
               {.name = "hidden_gates", .width = Width::times(3, 2), .rows = Rows::of(2)},
               {.name = "x"}},
    .outputs = {{.name = "y", .width = Width::of(2), .rows = Rows::of(2)}},
};

Status bind_gru_gate(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kGruGateSignature));
  const Tensor gi = context.input(0);
  const Tensor gh = context.input(1);
  const Tensor x = context.input(2);
  const Tensor y = context.output(0);
  auto& p = context.params<Params>();
  p = {gi, gh, x, y, pick_kernel(context.reference_only())};
  *run = run_gru_gate;
  return Status::kOk;
}

}  // namespace oxbow
