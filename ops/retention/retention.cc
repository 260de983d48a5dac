#include "ops/retention/retention.h"

#include <cmath>

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor q, k, v, decay, y;
  size_t heads, chunk, scratch_stride;
  float limit;
};

Status run_retention(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  const size_t keys = p.q.width / p.heads, values = p.v.width / p.heads;
  parallel_for(context.pool, p.heads, [&](size_t h, size_t worker) {
    RetentionHead head;
    head.tokens = context.rows(p.q);
    head.keys = keys;
    head.values = values;
    head.chunk = p.chunk;
    head.decay = p.decay.f32()[h];
    head.limit = p.limit;
    head.q = p.q.f32() + h * keys;
    head.k = p.k.f32() + h * keys;
    head.v = p.v.f32() + h * values;
    head.q_stride = p.q.width;
    head.v_stride = p.v.width;
    head.y = Tensor(p.y).f32() + h * values;
    retention_f32_f32_ref(head,
                          reinterpret_cast<float*>(context.scratch) + worker * p.scratch_stride);
  });
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kRetentionSignature = {
    .options = schema::OpOptions::RetentionOptions,
    .inputs = {{.name = "q"},
               {.name = "k", .width = Width::of(0), .rows = Rows::of(0)},
               {.name = "v", .rows = Rows::of(0)},
               {.name = "decay", .role = Role::kWeight, .rows = Rows::one()}},
    .outputs = {{.name = "y", .width = Width::of(2), .rows = Rows::of(0)}},
};

Status bind_retention(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kRetentionSignature));
  const auto* options = context.step().options_as_RetentionOptions();
  const Tensor q = context.input(0), k = context.input(1), v = context.input(2);
  const Tensor decay = context.input(3), y = context.output(0);
  const uint32_t heads = options->heads();
  if (heads == 0 || q.width % heads != 0 || v.width % heads != 0) {
    return context.fail("has %u heads, expected a divisor of %u and %u", heads, q.width, v.width);
  }
  OXB_TRY(check_width(context, decay, heads));
  if (!std::isfinite(options->limit()) || options->limit() < 1) {
    return context.fail("limit is %g, expected at least 1", double{options->limit()});
  }
  // Whole cache lines, so that no two threads share one.
  constexpr uint64_t kLine = kTensorAlignment / sizeof(float);
  uint64_t floats = 0, stride = 0, all = 0, bytes = 0;
  if (!checked_mul(q.width / heads, v.width / heads, &floats) ||
      !checked_align(floats, kLine, &stride) || !checked_mul(stride, context.threads(), &all) ||
      !checked_mul(all, sizeof(float), &bytes) || bytes > SIZE_MAX / 2) {
    return context.fail("needs more scratch than there is address space");
  }
  context.request_scratch(static_cast<size_t>(bytes));
  auto& p = context.params<Params>();
  p = {q, k, v, decay, y, heads, options->chunk(), static_cast<size_t>(stride), options->limit()};
  *run = run_retention;
  return Status::kOk;
}

}  // namespace oxbow
