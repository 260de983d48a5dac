#include "ops/halt/halt.h"

#include <cmath>
#include <cstring>

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor p, x, counts, mix, new_counts, new_mix, next;
  float threshold;
  bool first;
};

/// Updates the counts of a row; returns the weight of its new value.
float update(float threshold, float p, float* counts) {
  float &h = counts[0], &r = counts[1], &u = counts[2];
  if (!(h < 1.0f)) return 0.0f;
  u += 1.0f;
  if (h + p > threshold) {
    r += 1.0f - h;
    h += r;
    return r;
  }
  h += p;
  return p;
}

void copy_rows(const Tensor& from, size_t rows, Tensor to) {
  if (rows != 0) std::memmove(to.data, from.data, rows * to.stride());
}

Status run_halt(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor counts = p.new_counts, mix = p.new_mix, next = p.next;
  const size_t rows = context.rows(counts), given = context.rows(p.x), width = mix.width;
  if (given != rows && (given != 0 || p.first)) {
    return fail(context.error, Status::kFileCorrupt, "tensor '%s': %zu rows, expected %zu",
                p.x.name, given, rows);
  }
  if (given == 0) {
    copy_rows(p.counts, rows, counts);
    copy_rows(p.mix, rows, mix);
    return context.set_rows(next, 0);
  }
  bool runs = false;
  for (size_t row = 0; row < rows; ++row) {
    float count[kHaltCounts] = {};
    if (!p.first) std::memcpy(count, p.counts.f32(row), sizeof(count));
    const float weight = update(p.threshold, p.p.f32()[row], count);
    std::memcpy(counts.f32(row), count, sizeof(count));
    runs = runs || count[0] < p.threshold;
    const float* x = p.x.f32(row);
    const float* old = p.first ? nullptr : p.mix.f32(row);
    float* y = mix.f32(row);
    for (size_t i = 0; i < width; ++i) {
      y[i] = x[i] * weight + (old == nullptr ? 0.0f : old[i]) * (1.0f - weight);
    }
  }
  OXB_TRY(context.set_rows(next, runs ? static_cast<uint32_t>(rows) : 0));
  if (runs) copy_rows(p.x, rows, next);
  return Status::kOk;
}

/// Not the first of its kind: there are counts and a mix from the one before.
size_t goes_on(const schema::Step& step) {
  return step.inputs() != nullptr && step.inputs()->size() > 2;
}

/// The input that has all rows, also those of a round in which x has none.
uint8_t all(const StepView& view) { return goes_on(view.step()) != 0 ? 2 : 1; }
uint64_t all_rows(const StepView& view) { return view.at(all(view)).rows; }
Place new_counts(const StepView& view, size_t) {
  return {.width = Width::exactly(kHaltCounts), .rows = Rows::of(all(view))};
}
Place new_mix(const StepView& view, size_t) {
  return {.width = Width::of(1), .rows = Rows::of(all(view))};
}

}  // namespace

constexpr OpSignature kHaltSignature = {
    .options = schema::OpOptions::HaltOptions,
    .inputs = {{.name = "p", .width = Width::exactly(1), .rows = Rows::of(1)},
               {.name = "x"},
               {.name = "counts", .width = Width::exactly(kHaltCounts), .count = goes_on},
               {.name = "mix", .width = Width::of(1), .rows = Rows::of(2), .count = goes_on}},
    .outputs = {{.name = "new counts", .each = new_counts},
                {.name = "new mix", .each = new_mix},
                {.name = "next x", .width = Width::of(1), .rows = Rows::counted(1, all_rows)}},
};

Status bind_halt(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kHaltSignature));
  auto& p = context.params<Params>();
  p.first = !goes_on(context.step());
  p.threshold = context.step().options_as_HaltOptions()->threshold();
  if (!std::isfinite(p.threshold) || p.threshold <= 0.0f || p.threshold > 1.0f) {
    return context.fail("threshold is %g, expected more than 0 and at most 1", double{p.threshold});
  }
  p.p = context.input(0);
  p.x = context.input(1);
  p.new_counts = context.output(0);
  p.new_mix = context.output(1);
  p.next = context.output(2);
  if (!p.first) {
    p.counts = context.input(2);
    p.mix = context.input(3);
  }
  if (p.next.rows_symbol == p.new_counts.rows_symbol) {
    return context.fail("tensor '%s' must have a row symbol of its own", p.next.name);
  }
  *run = run_halt;
  return Status::kOk;
}

}  // namespace oxbow
