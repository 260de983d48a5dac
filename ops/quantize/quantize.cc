#include "ops/quantize/quantize.h"

#include <cstring>

#include "ops/common/row_output.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x;
  RowOutput y;
};

Status run_quantize(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  const size_t bytes = p.x.width * sizeof(float);
  parallel_for(context.pool, context.rows(p.x), [&](size_t row, size_t worker) {
    Tensor x = p.x, y = p.y.y;
    if (y.hadamard == 0) {
      quantize_into(p.y.quantize, x.f32(row), y, row);
    } else {
      // Others read x too.
      write_row(context, p.y, row, worker,
                [&](float* values) { std::memcpy(values, x.f32(row), bytes); });
    }
  });
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kQuantizeSignature = {
    .by_row = true,
    .inputs = {{.name = "x"}},
    .outputs =
        {{.name = "y", .types = kI8, .width = Width::of(0), .rows = Rows::of(0), .turns = true}},
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
  p.x = x;
  if (y.hadamard == 0) {
    p.y = {y, pick_quantize_kernel(context.reference_only()), 0};
  } else {
    OXB_TRY(bind_row_output(context, y, &p.y));
  }
  *run = run_quantize;
  return Status::kOk;
}

}  // namespace oxbow
