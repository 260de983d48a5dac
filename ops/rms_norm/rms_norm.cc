#include "ops/rms_norm/rms_norm.h"

#include "ops/common/norm_groups.h"
#include "schema/model_generated.h"

namespace oxbow {

static void move_on(const NormGroups& groups, RmsNormParams& norm) {
  norm.weight = groups.next(norm.weight);
}

namespace {

RmsNormKernel pick_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/rms_norm/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

}  // namespace

constexpr OpSignature kRmsNormSignature = {
    .options = schema::OpOptions::RmsNormOptions,
    .by_row = true,
    .inputs =
        {{.name = "x"},
         {.name = "weight", .role = Role::kWeight, .rows = Rows::one(), .count = norm_has_weights}},
    .outputs = {{.name = "y",
                 .types = kF32 | kI8,
                 .width = Width::of(0),
                 .rows = Rows::of(0),
                 .turns = true}},
};

Status bind_rms_norm(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kRmsNormSignature));
  const bool weighted = norm_has_weights(context.step()) != 0;
  const auto* options = context.step().options_as_RmsNormOptions();
  const float epsilon = options->epsilon();
  OXB_TRY(check_epsilon(context, epsilon));
  const Tensor x = context.input(0);
  const Tensor weight = weighted ? context.input(1) : Tensor();
  const Tensor y = context.output(0);
  auto& p = context.params<NormStep<RmsNormParams>>();
  OXB_TRY(
      check_norm_groups(context, x, options->groups(), weighted ? &weight : nullptr, &p.groups));
  p.x = x;
  p.norm = {weight.f32(), epsilon};
  p.kernel = pick_kernel(context.reference_only());
  OXB_TRY(bind_row_output(context, y, &p.y));
  *run = run_norm<RmsNormParams>;
  return Status::kOk;
}

}  // namespace oxbow
