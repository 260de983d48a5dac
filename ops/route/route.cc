#include "ops/route/route.h"

#include "ops/common/checks.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

struct Params {
  Tensor scores, routes, chosen;
};

Status run_route(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  const size_t experts = p.scores.width, rows = context.rows(p.scores);
  Tensor routes = p.routes, chosen = p.chosen;
  for (size_t row = 0; row < rows; ++row) {
    const float* scores = p.scores.f32(row);
    size_t best = 0;
    for (size_t e = 1; e < experts; ++e) {
      if (scores[e] > scores[best] || (scores[best] != scores[best] && scores[e] == scores[e])) {
        best = e;
      }
    }
    const float most = scores[best];
    const float sum = sum_f32(experts, [=](size_t e) { return exp_f32(scores[e] - most); });
    *routes.i32(row) = static_cast<int32_t>(best);
    chosen.f32(row)[0] = static_cast<float>(best);
    chosen.f32(row)[1] = 1.0f / sum;
  }
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kRouteSignature = {
    .inputs = {{.name = "scores"}},
    .outputs = {{.name = "routes",
                 .role = Role::kIds,
                 .types = kI32,
                 .width = Width::exactly(1),
                 .rows = Rows::of(0)},
                {.name = "chosen", .width = Width::exactly(2), .rows = Rows::of(0)}},
};

Status bind_route(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kRouteSignature));
  const Tensor scores = context.input(0), routes = context.output(0), chosen = context.output(1);
  if (routes.limit < scores.width) {
    return context.fail("tensor '%s' has numbers below %u, expected room for %u experts",
                        routes.name, routes.limit, scores.width);
  }
  context.params<Params>() = {scores, routes, chosen};
  *run = run_route;
  return Status::kOk;
}

}  // namespace oxbow
