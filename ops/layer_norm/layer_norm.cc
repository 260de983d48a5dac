#include "ops/layer_norm/layer_norm.h"

#include "ops/common/norm_groups.h"
#include "schema/model_generated.h"

namespace oxbow {

static void move_on(const NormGroups& groups, LayerNormParams& norm) {
  norm.weight = groups.next(norm.weight);
  norm.bias = groups.next(norm.bias);
}

namespace {

LayerNormKernel pick_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/layer_norm/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

}  // namespace

constexpr OpSignature kLayerNormSignature = {
    .options = schema::OpOptions::LayerNormOptions,
    .by_row = true,
    .inputs =
        {{.name = "x"},
         {.name = "weight", .role = Role::kWeight, .rows = Rows::one(), .count = norm_has_weights},
         {.name = "bias", .role = Role::kWeight, .rows = Rows::one(), .count = norm_has_weights}},
    .outputs = {{.name = "y",
                 .types = kF32 | kI8,
                 .width = Width::of(0),
                 .rows = Rows::of(0),
                 .turns = true}},
};

Status bind_layer_norm(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kLayerNormSignature));
  const bool weighted = norm_has_weights(context.step()) != 0;
  const auto* options = context.step().options_as_LayerNormOptions();
  const float epsilon = options->epsilon();
  OXB_TRY(check_epsilon(context, epsilon));
  const Tensor x = context.input(0);
  const Tensor weight = weighted ? context.input(1) : Tensor();
  const Tensor bias = weighted ? context.input(2) : Tensor();
  const Tensor y = context.output(0);
  auto& p = context.params<NormStep<LayerNormParams>>();
  OXB_TRY(
      check_norm_groups(context, x, options->groups(), weighted ? &weight : nullptr, &p.groups));
  if (weighted) OXB_TRY(check_width(context, bias, weight.width));
  if (options->deviation() && p.groups.width < 2) {
    return context.fail("norms by the deviation of %zu elements, expected at least 2",
                        p.groups.width);
  }
  p.x = x;
  p.norm = {weight.f32(), bias.f32(), epsilon, options->deviation()};
  p.kernel = pick_kernel(context.reference_only());
  OXB_TRY(bind_row_output(context, y, &p.y));
  *run = run_norm<LayerNormParams>;
  return Status::kOk;
}

}  // namespace oxbow
