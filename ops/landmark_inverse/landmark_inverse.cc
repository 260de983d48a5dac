#include "ops/landmark_inverse/landmark_inverse.h"

#include <algorithm>
#include <cmath>

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor q, k, x, sums, y, divisor;
  size_t heads, iterations, column;
  float scale;
  bool has_sums;
  /// Floats of scratch: the matrices of all heads, their largest sums, then room for each thread.
  size_t matrix, largest, rooms, room;
};

Status run_landmark_inverse(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y, used = p.divisor;
  auto* scratch = reinterpret_cast<float*>(context.scratch);
  float* largest = scratch + p.largest;
  const auto head_of = [&](size_t h) {
    LandmarkHead head;
    head.landmarks = p.q.rows;
    head.keys = p.q.width / p.heads;
    head.values = p.x.width / p.heads;
    head.stride = p.q.width;
    head.value_stride = p.x.width;
    head.scale = p.scale;
    head.iterations = p.iterations;
    head.q = p.q.f32() + h * head.keys;
    head.k = p.k.f32() + h * head.keys;
    head.x = p.x.f32() + h * head.values;
    head.y = y.f32() + h * head.values;
    return head;
  };
  parallel_for(context.pool, p.heads, [&](size_t h, size_t) {
    largest[h] = landmark_scores_ref(head_of(h), scratch + h * p.matrix);
  });
  float divisor = 0;
  for (size_t h = 0; h < p.heads; ++h) divisor = std::max(divisor, largest[h]);
  if (p.has_sums && context.rows(p.sums) != 0) {
    divisor = std::max(divisor, p.sums.f32()[p.column]);
  }
  used.f32()[0] = divisor;
  parallel_for(context.pool, p.heads, [&](size_t h, size_t worker) {
    landmark_inverse_ref(head_of(h), scratch + h * p.matrix, divisor,
                         scratch + p.rooms + worker * p.room);
  });
  return Status::kOk;
}

Status check_widths(BindContext& context, const Params& p) {
  if (p.q.width % p.heads != 0 || p.x.width % p.heads != 0) {
    return context.fail("has %zu heads, expected a divisor of %u and %u", p.heads, p.q.width,
                        p.x.width);
  }
  if (p.has_sums && p.column >= p.sums.width) {
    return context.fail("column is %zu, '%s' is %s", p.column, p.sums.name, describe(p.sums).text);
  }
  return Status::kOk;
}

Status check_options(BindContext& context) {
  const auto& options = *context.step().options_as_LandmarkInverseOptions();
  if (options.heads() == 0) return context.fail("has 0 heads, expected at least 1");
  if (!std::isfinite(options.scale())) return context.fail("scale is not finite");
  // More would change nothing, and a file must not make a run endless.
  if (options.iterations() > 64) {
    return context.fail("iterations is %u, expected at most 64", options.iterations());
  }
  return Status::kOk;
}

/// What the tensors, each of which fits into memory, need besides.
bool plan_scratch(size_t landmarks, size_t heads, size_t threads, Params* p, uint64_t* bytes) {
  // Whole cache lines, so that no two threads share one.
  constexpr uint64_t kLine = kTensorAlignment / sizeof(float);
  uint64_t matrix = 0, matrices = 0, room = 0, rooms = 0, floats = 0;
  if (!checked_mul(landmarks, landmarks, &matrix) || !checked_align(matrix, kLine, &matrix) ||
      !checked_mul(matrix, heads, &matrices) || !checked_mul(matrix, 4, &room) ||
      !checked_mul(room, threads, &rooms) ||
      !checked_add(matrices, round_up(heads, kLine), &floats) ||
      !checked_add(floats, rooms, &floats) || !checked_mul(floats, sizeof(float), bytes)) {
    return false;
  }
  p->matrix = static_cast<size_t>(matrix);
  p->largest = static_cast<size_t>(matrices);
  p->rooms = static_cast<size_t>(matrices + round_up(heads, kLine));
  p->room = static_cast<size_t>(room);
  return *bytes <= SIZE_MAX / 2;
}

size_t has_sums(const schema::Step& step) {
  return step.options_as_LandmarkInverseOptions()->has_sums();
}

}  // namespace

constexpr OpSignature kLandmarkInverseSignature = {
    .options = schema::OpOptions::LandmarkInverseOptions,
    .check_options = check_options,
    .inputs = {{.name = "q", .rows = Rows::fixed()},
               {.name = "k", .width = Width::of(0), .rows = Rows::of(0)},
               {.name = "x", .rows = Rows::of(0)},
               {.name = "sums", .count = has_sums}},
    .outputs = {{.name = "y", .width = Width::of(2), .rows = Rows::of(0)},
                {.name = "divisor", .width = Width::exactly(1), .rows = Rows::one()}},
};

Status bind_landmark_inverse(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kLandmarkInverseSignature));
  const auto* options = context.step().options_as_LandmarkInverseOptions();
  auto& p = context.params<Params>();
  p.q = context.input(0);
  p.k = context.input(1);
  p.x = context.input(2);
  p.y = context.output(0);
  p.divisor = context.output(1);
  p.heads = options->heads();
  p.iterations = options->iterations();
  p.column = options->column();
  p.scale = options->scale();
  p.has_sums = options->has_sums();
  if (p.has_sums) p.sums = context.input(3);
  OXB_TRY(check_widths(context, p));
  uint64_t bytes = 0;
  if (!plan_scratch(p.q.rows, p.heads, context.threads(), &p, &bytes)) {
    return context.fail("needs more scratch than there is address space");
  }
  context.request_scratch(static_cast<size_t>(bytes));
  *run = run_landmark_inverse;
  return Status::kOk;
}

}  // namespace oxbow
