#include "ops/pool_rows/pool_rows.h"

#include <algorithm>

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

using Params = PoolRowsParams;
using Cut = PoolRowsCut;

/// Rows [first, end) of s, which is x behind the zeros in front.
struct Group {
  size_t first = 0, end = 0;
};

Group group_of(const Cut& cut, size_t j) {
  return {j * cut.group, j + 1 == cut.groups ? cut.rows : (j + 1) * cut.group};
}

Cut cut_rows(const Params& p, size_t rows, size_t group) {
  Cut cut{rows, group, 0};
  if (!p.joins) {
    cut.groups = ceil_div(rows, group);
    return cut;
  }
  for (size_t r = group - 1; r < rows; r += group) {
    if (!p.has_mask || p.mask.i32()[r] != 0) ++cut.groups;
  }
  return cut;
}

void sum_group(const Params& p, const Tensor& x, const Cut& cut, size_t j, float* y) {
  const Group group = group_of(cut, j);
  const size_t width = p.y.width;
  std::fill_n(y, width, 0.0f);
  for (size_t r = std::max<size_t>(group.first, p.front); r < group.end; ++r) {
    const size_t row = r - p.front;
    if (p.has_mask && p.mask.i32()[row] == 0) continue;
    const float* from = x.f32(row);
    if (p.has_factors) {
      const float* factor = p.factors.f32(r - group.first);
      for (size_t i = 0; i < width; ++i) y[i] += from[i] * factor[i];
    } else {
      for (size_t i = 0; i < width; ++i) y[i] += from[i];
    }
  }
  if (!p.mean) return;
  const auto count = static_cast<float>(group.end - group.first);
  for (size_t i = 0; i < width; ++i) y[i] /= count;
}

/// Rows of a group in this run.
Status group_length(const RunContext& context, const Params& p, size_t rows, size_t* length) {
  *length = p.group != 0 ? p.group : std::max<size_t>(rows, 1);
  const uint32_t numbers = p.has_shape ? context.rows(p.shape) : 0;
  if (numbers != 0) {
    const int32_t last = p.shape.i32()[numbers - 1];
    if (last <= 0 || rows % static_cast<size_t>(last) != 0) {
      return fail(context.error, Status::kInvalidArgument,
                  "input '%s' ends with %d, expected a divisor of the %zu rows it is the shape of",
                  p.shape.name, last, rows);
    }
    *length = static_cast<size_t>(last);
  }
  if (p.has_factors && *length > p.factors.rows) {
    return fail(context.error, Status::kInvalidArgument,
                "groups of %zu rows are to be summed, the model has factors for %u", *length,
                p.factors.rows);
  }
  return Status::kOk;
}

Status run_pool_rows(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Cut cuts[2];
  OXB_TRY(cut_pool_rows(context, p, cuts));
  parallel_for(context.pool, cuts[0].groups + cuts[1].groups, [&](size_t row, size_t) {
    const size_t source = row < cuts[0].groups ? 0 : 1;
    sum_group(p, p.x[source], cuts[source], source == 0 ? row : row - cuts[0].groups,
              Tensor(p.y).f32(row));
  });
  return Status::kOk;
}

size_t has_two(const schema::Step& step) { return step.options_as_PoolRowsOptions()->two(); }
size_t has_factors(const schema::Step& step) {
  return step.options_as_PoolRowsOptions()->has_factors();
}
size_t has_mask(const schema::Step& step) { return step.options_as_PoolRowsOptions()->has_mask(); }
size_t has_shape(const schema::Step& step) {
  return step.options_as_PoolRowsOptions()->has_shape();
}

}  // namespace

PoolRowsParams read_pool_rows(const schema::PoolRowsOptions& options) {
  PoolRowsParams p = {};
  p.sources = options.two() ? 2 : 1;
  p.group = options.group();
  p.front = options.front();
  p.mean = options.mean();
  p.joins = options.joins();
  p.has_factors = options.has_factors();
  p.has_mask = options.has_mask();
  p.has_shape = options.has_shape();
  return p;
}

Status cut_pool_rows(RunContext& context, const PoolRowsParams& params, PoolRowsCut (&cuts)[2]) {
  const PoolRowsParams& p = params;
  size_t groups = 0;
  for (size_t s = 0; s < p.sources; ++s) {
    const size_t rows = context.rows(p.x[s]);
    size_t length = 1;
    OXB_TRY(group_length(context, p, rows, &length));
    cuts[s] = cut_rows(p, rows, length);
    groups += cuts[s].groups;
  }
  if (p.y.rows_symbol < 0) {
    if (groups == p.y.rows) return Status::kOk;
    return fail(context.error, Status::kInvalidArgument, "tensor '%s': %zu rows, expected %u",
                p.y.name, groups, p.y.rows);
  }
  if (groups > p.y.rows) {
    return fail(context.error, Status::kInvalidArgument,
                "tensor '%s': %zu rows, the model has room for %u", p.y.name, groups, p.y.rows);
  }
  return context.set_rows(p.y, static_cast<uint32_t>(groups));
}

constexpr OpSignature kPoolRowsSignature = {
    .options = schema::OpOptions::PoolRowsOptions,
    .inputs =
        {{.name = "x"},
         {.name = "second x", .width = Width::of(0), .count = has_two},
         {.name = "factors", .width = Width::of(0), .rows = Rows::fixed(), .count = has_factors},
         {.name = "mask",
          .role = Role::kIds,
          .types = kI32,
          .width = Width::exactly(1),
          .rows = Rows::of(0),
          .count = has_mask},
         {.name = "shape",
          .role = Role::kIds,
          .types = kI32,
          .width = Width::exactly(1),
          .count = has_shape}},
    .outputs = {{.name = "y", .width = Width::of(0), .rows = Rows::counted_or_fixed(0)}},
};

Status bind_pool_rows(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kPoolRowsSignature));
  const auto* options = context.step().options_as_PoolRowsOptions();
  const bool mask = options->has_mask(), shape = options->has_shape();
  if (mask && (!options->joins() || options->front() != 0 || options->two())) {
    return context.fail("has a mask, expected one x whose last rows join, with nothing in front");
  }
  // The last of joined groups has all rows that are left, more than there are factors.
  if (options->joins() &&
      (options->group() == 0 || options->front() != 0 || shape || options->has_factors())) {
    return context.fail("joins rows, expected a group, no shape, no factors and nothing in front");
  }
  auto& p = context.params<Params>();
  p = read_pool_rows(*options);
  p.y = context.output(0);
  OXB_TRY(check_room(context, p.y));
  size_t next = 0;
  for (size_t s = 0; s < p.sources; ++s) p.x[s] = context.input(next++);
  if (p.has_factors) p.factors = context.input(next++);
  if (mask) p.mask = context.input(next++);
  if (shape) p.shape = context.input(next++);
  *run = run_pool_rows;
  return Status::kOk;
}

}  // namespace oxbow
