#include "ops/mix_attention/mix_attention.h"

#include <cmath>

#include "ops/common/checks.h"
#include "ops/common/row_output.h"
#include "runtime/base/math.h"

namespace oxbow {
namespace {

struct Params {
  Tensor first;
  const float* x[kMaxMixed];
  const float* log_sums[kMaxMixed];
  size_t count, heads;
  RowOutput output;
};

void mix_row(const Params& p, size_t row, float* y) {
  const size_t width = p.first.width / p.heads;
  for (size_t head = 0; head < p.heads; ++head, y += width) {
    const auto log_sum = [&](size_t n) { return p.log_sums[n][row * p.heads + head]; };
    const float most = max_f32(p.count, log_f32(0.0f), log_sum);
    float weights[kMaxMixed], sum = 0.0f;
    for (size_t n = 0; n < p.count; ++n) {
      weights[n] = std::isinf(most) && most < 0 ? 0.0f : exp_f32(log_sum(n) - most);
      sum += weights[n];
    }
    const float inverse = sum == 0.0f ? 0.0f : 1.0f / sum;
    for (size_t d = 0; d < width; ++d) y[d] = 0.0f;
    for (size_t n = 0; n < p.count; ++n) {
      // What an attention that saw nothing wrote does not matter.
      if (weights[n] == 0.0f) continue;
      const float weight = weights[n] * inverse;
      const float* x = p.x[n] + (row * p.heads + head) * width;
      for (size_t d = 0; d < width; ++d) y[d] += weight * x[d];
    }
  }
}

Status run_mix_attention(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  parallel_for(context.pool, context.rows(p.first), [&](size_t row, size_t worker) {
    write_row(context, p.output, row, worker, [&](float* y) { mix_row(p, row, y); });
  });
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kMixAttentionSignature = {
    .inputs = {{.name = "x"},
               {.name = "log-sum-exps", .rows = Rows::of(0)},
               {.name = "another x and its log-sum-exps",
                .rows = Rows::of(0),
                .least = 0,
                .most = 2 * (kMaxMixed - 1)}},
    .outputs = {{.name = "y", .types = kF32 | kI8, .width = Width::of(0), .rows = Rows::of(0)}},
};

Status bind_mix_attention(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kMixAttentionSignature));
  const size_t inputs = context.input_count();
  if (inputs % 2 != 0) {
    return context.fail("has %zu inputs, expected 1 to %zu pairs", inputs, kMaxMixed);
  }
  auto& p = context.params<Params>();
  p.first = context.input(0);
  p.count = inputs / 2;
  p.heads = context.input(1).width;
  if (p.heads == 0 || p.first.width % p.heads != 0) {
    return context.fail("'%s' of width %u has %zu log-sum-exps", p.first.name, p.first.width,
                        p.heads);
  }
  for (size_t n = 0; n < p.count; ++n) {
    const Tensor x = context.input(2 * n), log_sums = context.input(2 * n + 1);
    OXB_TRY(check_width(context, x, p.first.width));
    OXB_TRY(check_width(context, log_sums, p.heads));
    p.x[n] = x.f32();
    p.log_sums[n] = log_sums.f32();
  }
  const Tensor y = context.output(0);
  // All have as many rows.
  OXB_TRY(check_room(context, y));
  OXB_TRY(bind_row_output(context, y, &p.output));
  *run = run_mix_attention;
  return Status::kOk;
}

}  // namespace oxbow
