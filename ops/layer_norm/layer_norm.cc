#include "ops/layer_norm/layer_norm.h"

#include <cmath>

#include "ops/common/norm_groups.h"
#include "ops/common/row_output.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x;
  RowOutput y;
  LayerNormParams norm;
  NormGroups groups;
  LayerNormKernel kernel;
};

Status run_layer_norm(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  parallel_for(context.pool, context.rows(p.x), [&](size_t row, size_t worker) {
    write_row(context, p.y, row, worker, [&](float* y) {
      const float* x = p.x.f32(row);
      LayerNormParams norm = p.norm;
      for (size_t g = 0; g < p.groups.count; ++g) {
        p.kernel(x, p.groups.width, norm, y);
        x += p.groups.width;
        y += p.groups.width;
        norm.weight = p.groups.next(norm.weight);
        norm.bias = p.groups.next(norm.bias);
      }
    });
  });
  return Status::kOk;
}

LayerNormKernel pick_kernel(bool reference_only) {
#define OXB_KERNEL(isa, fn) \
  if (may_use(isa, reference_only)) return fn;
#include "ops/layer_norm/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

bool has_weight(const schema::Step& step) {
  return step.inputs() == nullptr || step.inputs()->size() != 1;
}

}  // namespace

constexpr OpSignature kLayerNormSignature = {
    .options = schema::OpOptions::LayerNormOptions,
    .inputs = {{.name = "x"},
               {.name = "weight", .role = Role::kWeight, .rows = Rows::one(), .wanted = has_weight},
               {.name = "bias", .role = Role::kWeight, .rows = Rows::one(), .wanted = has_weight}},
    .outputs = {{.name = "y",
                 .types = kF32 | kI8,
                 .width = Width::of(0),
                 .rows = Rows::of(0),
                 .turns = true}},
};

Status bind_layer_norm(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kLayerNormSignature));
  const bool weighted = has_weight(context.step());
  const auto* options = context.step().options_as_LayerNormOptions();
  const float epsilon = options->epsilon();
  // Positive, so that a row of equal values divides by something.
  if (!std::isfinite(epsilon) || epsilon <= 0) {
    return context.fail("epsilon is %g, expected a positive number", double{epsilon});
  }
  const Tensor x = context.input(0);
  const Tensor weight = weighted ? context.input(1) : Tensor();
  const Tensor bias = weighted ? context.input(2) : Tensor();
  const Tensor y = context.output(0);
  auto& p = context.params<Params>();
  OXB_TRY(
      check_norm_groups(context, x, options->groups(), weighted ? &weight : nullptr, &p.groups));
  if (weighted) OXB_TRY(check_width(context, bias, weight.width));
  p.x = x;
  p.norm = {weight.f32(), bias.f32(), epsilon};
  p.kernel = pick_kernel(context.reference_only());
  OXB_TRY(bind_row_output(context, y, &p.y));
  *run = run_layer_norm;
  return Status::kOk;
}

}  // namespace oxbow
