#include "ops/multiply/multiply.h"

#include "ops/common/broadcast.h"
#include "ops/common/row_output.h"

namespace oxbow {
namespace {

struct Params {
  Tensor a, b;
  RowOutput y;
  Broadcast broadcast;
  MultiplyKernel kernel;
};

Status run_multiply(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  parallel_for(context.pool, context.rows(p.a), [&](size_t row, size_t worker) {
    const float* a = p.a.f32(row);
    const float* b = p.b.f32(p.broadcast.one_row ? 0 : row);
    write_row(context, p.y, row, worker, [&](float* y) {
      if (p.broadcast.repeat == 1) {
        p.kernel(a, b, p.a.width, y);
      } else {
        broadcast_row(a, b, p.a.width, p.broadcast.repeat, y,
                      [](float one, float other) { return one * other; });
      }
    });
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

constexpr OpSignature kMultiplySignature = {
    .by_row = true,
    .inputs = {{.name = "a"}, {.name = "b"}},
    .outputs = {{.name = "y",
                 .types = kF32 | kI8,
                 .width = Width::of(0),
                 .rows = Rows::of(0),
                 .turns = true}},
};

Status bind_multiply(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kMultiplySignature));
  const Tensor a = context.input(0);
  const Tensor b = context.input(1);
  const Tensor y = context.output(0);
  auto& p = context.params<Params>();
  OXB_TRY(check_broadcast(context, a, b, &p.broadcast));
  p.a = a;
  p.b = b;
  p.kernel = pick_kernel(context.reference_only());
  OXB_TRY(bind_row_output(context, y, &p.y));
  *run = run_multiply;
  return Status::kOk;
}

}  // namespace oxbow
