#include "ops/add/add.h"

#include "ops/common/checks.h"

namespace oxbow {
namespace {

// Elements in one piece of parallel work.
constexpr size_t kPiece = 8192;

struct Params {
  Tensor a, b, y;
  AddKernel kernel;
};

Status run_add(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  const size_t count = size_t{context.rows(p.a)} * p.a.width;
  const float* a = p.a.f32();
  const float* b = p.b.f32();
  float* y = Tensor(p.y).f32();
  parallel_for(context.pool, ceil_div(count, kPiece), [&](size_t piece, size_t) {
    const size_t begin = piece * kPiece;
    const size_t length = count - begin < kPiece ? count - begin : kPiece;
    p.kernel(a + begin, b + begin, length, y + begin);
  });
  return Status::kOk;
}

}  // namespace

AddKernel pick_add_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/add/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

Status bind_add(BindContext& context, RunFunction* run) {
  OXB_TRY(check_counts(context, 2, 1));
  const Tensor a = context.input(0);
  const Tensor b = context.input(1);
  const Tensor y = context.output(0);
  for (const Tensor& tensor : {a, b, y}) {
    OXB_TRY(check_f32(context, tensor));
    OXB_TRY(check_width(context, tensor, a.width));
    OXB_TRY(check_same_rows(context, a, tensor));
  }
  auto& p = context.params<Params>();
  p = {a, b, y, pick_add_kernel(context.reference_only())};
  *run = run_add;
  return Status::kOk;
}

}  // namespace oxbow
