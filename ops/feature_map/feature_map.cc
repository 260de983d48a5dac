#include "ops/feature_map/feature_map.h"

#include <cmath>

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x, y;
  size_t heads, order;
  float epsilon;
};

Status run_feature_map(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  const size_t width = p.x.width / p.heads, out = p.y.width / p.heads;
  parallel_for(context.pool, context.rows(p.x), [&](size_t row, size_t) {
    for (size_t h = 0; h < p.heads; ++h) {
      feature_map_f32_f32_ref(p.x.f32(row) + h * width, width, p.order, p.epsilon,
                              Tensor(p.y).f32(row) + h * out);
    }
  });
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kFeatureMapSignature = {
    .options = schema::OpOptions::FeatureMapOptions,
    .by_row = true,
    .inputs = {{.name = "x"}},
    .outputs = {{.name = "y", .rows = Rows::of(0)}},
};

Status bind_feature_map(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kFeatureMapSignature));
  const auto* options = context.step().options_as_FeatureMapOptions();
  const float epsilon = options->epsilon();
  if (!std::isfinite(epsilon) || epsilon <= 0) {
    return context.fail("epsilon is %g, expected a positive number", double{epsilon});
  }
  const Tensor x = context.input(0);
  const Tensor y = context.output(0);
  if (options->heads() == 0 || x.width % options->heads() != 0) {
    return context.fail("has %u heads, expected a divisor of %u", options->heads(), x.width);
  }
  uint64_t width = 0;
  if (options->order() == 0 || !checked_mul(uint64_t{2} * x.width, options->order(), &width) ||
      y.width != width) {
    return context.fail("maps '%s', %s, to '%s', %s, with order %u: the widths do not fit", x.name,
                        describe(x).text, y.name, describe(y).text, options->order());
  }
  auto& p = context.params<Params>();
  p = {x, y, options->heads(), options->order(), epsilon};
  *run = run_feature_map;
  return Status::kOk;
}

}  // namespace oxbow
