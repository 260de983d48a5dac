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

Status bind_rope(BindContext& context, RunFunction* run) {
  OXB_TRY(check_counts(context, 2, 1));
  const auto* options = context.step().options_as_RopeOptions();
  if (options == nullptr) return fail_options(context, "RopeOptions");
  const Tensor x = context.input(0);
  const Tensor angles = context.input(1);
  const Tensor y = context.output(0);
  OXB_TRY(check_f32(context, x));
  const uint32_t heads = options->heads();
  if (heads == 0 || x.width % heads != 0) {
    return context.fail("has %u heads, expected a number that divides the width of '%s', %u", heads,
                        x.name, x.width);
  }
  OXB_TRY(check_f32(context, angles));
  OXB_TRY(check_same_rows(context, x, angles));
  if (angles.width % 2 != 0 || angles.width > x.width / heads) {
    return context.fail("tensor '%s' is %s, expected an even width of at most %u", angles.name,
                        describe(angles).text, x.width / heads);
  }
  OXB_TRY(check_width(context, y, x.width));
  OXB_TRY(check_same_rows(context, x, y));

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
