#include "ops/route/route.h"

#include <algorithm>

#include "ops/common/checks.h"
#include "runtime/base/math.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor scores, routes, chosen;
  /// 0: none.
  uint32_t capacity;
};

Status run_route(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  const size_t experts = p.scores.width, rows = context.rows(p.scores);
  Tensor routes = p.routes, chosen = p.chosen;
  auto* taken = reinterpret_cast<uint32_t*>(context.scratch);
  if (p.capacity != 0) std::fill_n(taken, experts, 0u);
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
    const bool full = p.capacity != 0 && taken[best]++ >= p.capacity;
    chosen.f32(row)[1] = full ? 0.0f : 1.0f / sum;
  }
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kRouteSignature = {
    .options = schema::OpOptions::RouteOptions,
    .may_lack_options = true,
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
  const auto* options = context.step().options_as_RouteOptions();
  const uint32_t capacity = options == nullptr ? 0 : options->capacity();
  if (capacity != 0) context.request_scratch(size_t{scores.width} * sizeof(uint32_t));
  context.params<Params>() = {scores, routes, chosen, capacity};
  *run = run_route;
  return Status::kOk;
}

}  // namespace oxbow
