#include "ops/most_used/most_used.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/common/checks.h"
#include "runtime/base/checked.h"
#include "runtime/base/math.h"
#include "runtime/base/ring_rule.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor q, log_sums, keys, x, key_memory, memory, table, bias, query_bias, usage, out;
  size_t heads, head_width, group;
  float scale;
};

/// What a head has of a row, however it is stored.
struct HeadRow {
  const float* values = nullptr;
  const int8_t* codes = nullptr;
  float scale = 0;

  HeadRow(const Tensor& tensor, size_t row, size_t head, size_t width) {
    if (tensor.type == DataType::kF32) {
      values = tensor.f32(row) + head * width;
    } else {
      codes = tensor.i8(row) + head * width;
      scale = tensor.row_scales(row)[head];
    }
  }
  float dot(const float* x, size_t width) const {
    if (values != nullptr) return dot_f32(x, values, width);
    return sum_f32(width, [&](size_t d) { return x[d] * static_cast<float>(codes[d]); }) * scale;
  }
};

/// The rows held and the new ones.
struct Line {
  RingPosition ring;
  size_t held, rows;
  size_t size() const { return held + rows; }
};

size_t slot_of(const Params& p, const Line& line, size_t row) {
  return (size_t{line.ring.head} + row) % p.memory.rows;
}

/// The weights that this run's queries give row r, one after the other.
float weights_of(const Params& p, const Line& line, size_t r) {
  const size_t width = p.head_width, first = r < line.held ? 0 : r - line.held;
  float sum = 0;
  for (size_t h = 0; h < p.heads; ++h) {
    const HeadRow key = r < line.held ? HeadRow(p.key_memory, slot_of(p, line, r), h, width)
                                      : HeadRow(p.keys, r - line.held, h, width);
    const float of_all = key.dot(p.query_bias.f32() + h * width, width);
    for (size_t i = first; i < line.rows; ++i) {
      const size_t t = std::min<size_t>(line.held + i - r, p.table.rows - 1);
      const float* q = p.q.f32(i) + h * width;
      const float position = HeadRow(p.table, t, h, width).dot(q, width) + p.bias.f32(t)[h];
      const float score = p.scale * ((key.dot(q, width) + of_all) + position);
      sum += exp_f32(score - p.log_sums.f32(i)[h]);
    }
  }
  return sum;
}

void copy_row(const Params& p, const Line& line, size_t r, float* out) {
  if (r >= line.held) {
    std::memcpy(out, p.x.f32(r - line.held), p.x.width * sizeof(float));
    return;
  }
  const HeadRow row(p.memory, slot_of(p, line, r), 0, p.memory.width);
  for (size_t d = 0; d < p.memory.width; ++d) {
    out[d] = row.values != nullptr ? row.values[d] : static_cast<float>(row.codes[d]) * row.scale;
  }
}

Status run_most_used(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  const RingPosition ring = context.rings[p.memory.ring];
  const Line line = {ring, ring.count, context.rows(p.x)};
  const RingStep step = ring_step(line.held, line.rows, p.memory.rows, p.group);
  OXB_TRY(context.set_rows(p.out, static_cast<uint32_t>(step.groups)));

  auto* sums = reinterpret_cast<float*>(context.scratch);
  Tensor usage = p.usage, out = p.out;
  std::copy_n(usage.f32(), line.held, sums);
  std::fill_n(sums + line.held, line.rows, 0.0f);
  parallel_for(context.pool, line.size(),
               [&](size_t r, size_t) { sums[r] += weights_of(p, line, r); });

  for (size_t g = 0; g < step.groups; ++g) {
    const size_t first = g * p.group;
    size_t most = first;
    float greatest = -1;
    for (size_t r = first; r < first + p.group; ++r) {
      const float average = sums[r] / static_cast<float>(line.size() - r);
      if (!(average > greatest)) continue;
      greatest = average;
      most = r;
    }
    copy_row(p, line, most, out.f32(g));
  }
  std::copy_n(sums + step.leaving, step.staying, usage.f32());
  std::fill_n(usage.f32() + step.staying, p.memory.rows - step.staying, 0.0f);
  return Status::kOk;
}

Status check_scales(BindContext& context, const Tensor& tensor, size_t heads) {
  if (tensor.type == DataType::kF32 || tensor.scale_groups == heads) return Status::kOk;
  return context.fail("tensor '%s' is %s, expected a scale for each of %zu heads", tensor.name,
                      describe(tensor).text, heads);
}

/// In the order of the inputs.
enum Input : uint8_t {
  kQuery,
  kLogSums,
  kKeys,
  kRows,
  kKeyMemory,
  kMemory,
  kTable,
  kBias,
  kQueryBias,
  kUsage
};

Status check_options(BindContext& context) {
  const auto& options = *context.step().options_as_MostUsedOptions();
  if (options.heads() == 0) return context.fail("has 0 heads, expected at least 1");
  if (options.group() == 0) return context.fail("group is 0, expected at least 1");
  if (!std::isfinite(options.scale())) return context.fail("scale must be finite");
  return Status::kOk;
}

uint64_t heads(const StepView& view) { return view.step().options_as_MostUsedOptions()->heads(); }
uint64_t rows_of_memory(const StepView& view) { return view.input(kMemory).rows; }
uint64_t most_groups(const StepView& view) {
  const uint64_t held = rows_of_memory(view);
  const uint32_t group = view.step().options_as_MostUsedOptions()->group();
  return ring_step(held, view.input(kRows).rows, held, group).groups;
}

}  // namespace

constexpr OpSignature kMostUsedSignature = {
    .options = schema::OpOptions::MostUsedOptions,
    .check_options = check_options,
    .inputs = {{.name = "q", .rows = Rows::with_room()},
               {.name = "log-sum-exps", .width = Width::told(heads), .rows = Rows::of(kQuery)},
               {.name = "keys",
                .types = kF32 | kI8,
                .width = Width::of(kQuery),
                .rows = Rows::of(kQuery)},
               {.name = "rows", .rows = Rows::of(kQuery)},
               {.name = "key memory",
                .role = Role::kState,
                .types = kF32 | kI8,
                .width = Width::of(kQuery),
                .rows = Rows::ring()},
               {.name = "memory",
                .role = Role::kState,
                .types = kF32 | kI8OneScale,
                .width = Width::of(kRows),
                .rows = Rows::same_ring(kKeyMemory)},
               {.name = "table",
                .role = Role::kWeight,
                .types = kF32 | kI8,
                .width = Width::of(kQuery),
                .rows = Rows::fixed()},
               {.name = "bias",
                .role = Role::kWeight,
                .width = Width::told(heads),
                .rows = Rows::of(kTable)},
               {.name = "query bias",
                .role = Role::kWeight,
                .width = Width::of(kQuery),
                .rows = Rows::one()},
               {.name = "usage",
                .role = Role::kState,
                .width = Width::exactly(1),
                .rows = Rows::told(rows_of_memory)}},
    .outputs = {{.name = "rows",
                 .width = Width::of(kRows),
                 .rows = Rows::counted(kQuery, most_groups)},
                {.name = "usage",
                 .role = Role::kState,
                 .width = Width::exactly(1),
                 .rows = Rows::told(rows_of_memory),
                 .state_of = kUsage}},
};

Status bind_most_used(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kMostUsedSignature));
  const auto* options = context.step().options_as_MostUsedOptions();
  auto& p = context.params<Params>();
  p = {context.input(kQuery),
       context.input(kLogSums),
       context.input(kKeys),
       context.input(kRows),
       context.input(kKeyMemory),
       context.input(kMemory),
       context.input(kTable),
       context.input(kBias),
       context.input(kQueryBias),
       context.input(kUsage),
       context.output(0),
       options->heads(),
       0,
       options->group(),
       options->scale()};
  if (p.q.width % p.heads != 0) {
    return context.fail("has %zu heads, expected a divisor of %u", p.heads, p.q.width);
  }
  p.head_width = p.q.width / p.heads;
  for (const Tensor* tensor : {&p.keys, &p.key_memory, &p.table}) {
    OXB_TRY(check_scales(context, *tensor, p.heads));
  }
  if (!ring_takes_group(p.memory.rows, p.group)) {
    return context.fail("the ring of '%s' holds %u rows, too few for groups of %zu", p.memory.name,
                        p.memory.rows, p.group);
  }
  // Two numbers of 32 bits.
  const uint64_t bytes = (uint64_t{p.memory.rows} + p.x.rows) * sizeof(float);
  if (bytes > SIZE_MAX / 2) return context.fail("needs more scratch than there is address space");
  context.request_scratch(static_cast<size_t>(bytes));
  *run = run_most_used;
  return Status::kOk;
}

}  // namespace oxbow
