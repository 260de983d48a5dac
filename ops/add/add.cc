#include "ops/add/add.h"

#include "ops/common/broadcast.h"

namespace oxbow {
namespace {

// Elements in one task of a thread.
constexpr size_t kTaskElements = 8192;

struct Params {
  Tensor a, b, y;
  Broadcast broadcast;
  AddKernel kernel;
};

Status run_add(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  const size_t count = size_t{context.rows(p.a)} * p.a.width;
  const float* a = p.a.f32();
  const float* b = p.b.f32();
  float* y = Tensor(p.y).f32();
  parallel_for(context.pool, ceil_div(count, kTaskElements), [&](size_t task, size_t) {
    const size_t begin = task * kTaskElements;
    const size_t length = count - begin < kTaskElements ? count - begin : kTaskElements;
    p.kernel(a + begin, b + begin, length, y + begin);
  });
  return Status::kOk;
}

Status run_broadcast_add(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  parallel_for(context.pool, context.rows(p.a), [&](size_t row, size_t) {
    broadcast_row(p.a.f32(row), p.b.f32(p.broadcast.one_row ? 0 : row), p.a.width,
                  p.broadcast.repeat, Tensor(p.y).f32(row),
                  [](float one, float other) { return one + other; });
  });
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kAddSignature = {
    .by_row = true,
    .inputs = {{.name = "a"}, {.name = "b"}},
    .outputs = {{.name = "y", .width = Width::of(0), .rows = Rows::of(0)}},
};

AddKernel pick_add_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/add/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

Status bind_add(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kAddSignature));
  const Tensor a = context.input(0);
  const Tensor b = context.input(1);
  const Tensor y = context.output(0);
  auto& p = context.params<Params>();
  p = {a, b, y, {}, pick_add_kernel(context.reference_only())};
  OXB_TRY(check_broadcast(context, a, b, &p.broadcast));
  *run = p.broadcast.plain() ? run_add : run_broadcast_add;
  return Status::kOk;
}

}  // namespace oxbow
