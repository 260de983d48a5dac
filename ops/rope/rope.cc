#include "ops/rope/rope.h"

#include "ops/common/checks.h"
#include "ops/common/row_output.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x, angles;
  RowOutput y;
  RopeParams rope;
  RopeKernel kernel;
};

Status run_rope(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  parallel_for(context.pool, context.rows(p.x), [&](size_t row, size_t worker) {
    write_row(context, p.y, row, worker,
              [&](float* y) { p.kernel(p.x.f32(row), p.angles.f32(row), p.rope, y); });
  });
  return Status::kOk;
}

RopeKernel pick_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/rope/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

}  // namespace

constexpr OpSignature kRopeSignature = {
    .options = schema::OpOptions::RopeOptions,
    .by_row = true,
    .inputs = {{.name = "x"}, {.name = "angles", .rows = Rows::of(0)}},
    .outputs = {{.name = "y",
                 .types = kF32 | kI8,
                 .width = Width::of(0),
                 .rows = Rows::of(0),
                 .turns = true}},
};

Status bind_rope(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kRopeSignature));
  const auto* options = context.step().options_as_RopeOptions();
  const Tensor x = context.input(0);
  const Tensor angles = context.input(1);
  const Tensor y = context.output(0);
  const uint32_t heads = options->heads();
  if (heads == 0 || x.width % heads != 0) {
    return context.fail("has %u heads, expected a number that divides the width of '%s', %u", heads,
                        x.name, x.width);
  }
  if (angles.width % 2 != 0 || angles.width > x.width / heads) {
    return context.fail("tensor '%s' is %s, expected an even width of at most %u", angles.name,
                        describe(angles).text, x.width / heads);
  }
  auto& p = context.params<Params>();
  p.x = x;
  p.angles = angles;
  p.rope = {heads, x.width / heads, angles.width, options->adjacent()};
  p.kernel = pick_kernel(context.reference_only());
  OXB_TRY(bind_row_output(context, y, &p.y));
  *run = run_rope;
  return Status::kOk;
}

}  // namespace oxbow
