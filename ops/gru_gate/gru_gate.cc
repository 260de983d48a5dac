#include "ops/gru_gate/gru_gate.h"

#include "ops/common/checks.h"

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

Status bind_gru_gate(BindContext& context, RunFunction* run) {
  OXB_TRY(check_counts(context, 3, 1));
  const Tensor gi = context.input(0);
  const Tensor gh = context.input(1);
  const Tensor x = context.input(2);
  const Tensor y = context.output(0);
  for (const Tensor& tensor : {gi, gh, x, y}) {
    OXB_TRY(check_f32(context, tensor));
    OXB_TRY(check_same_rows(context, x, tensor));
  }
  OXB_TRY(check_width(context, y, x.width));
  for (const Tensor& gates : {gi, gh}) {
    if (gates.width != uint64_t{x.width} * 3) {
      return context.fail("tensor '%s' is %s, expected three gates of %u", gates.name,
                          describe(gates).text, x.width);
    }
  }
  auto& p = context.params<Params>();
  p = {gi, gh, x, y, pick_kernel(context.reference_only())};
  *run = run_gru_gate;
  return Status::kOk;
}

}  // namespace oxbow
