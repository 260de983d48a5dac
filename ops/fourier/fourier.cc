#include "ops/fourier/fourier.h"

#include <algorithm>

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x, y;
  /// Floats of scratch: tables for both directions, then room for each thread.
  size_t column_table, rooms, room;
};

Status run_fourier(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  const size_t rows = context.rows(p.x), width = p.x.width;
  if (rows == 0) return Status::kOk;
  auto* scratch = reinterpret_cast<float*>(context.scratch);
  const auto room = [&](size_t worker) { return scratch + p.rooms + worker * p.room; };
  const FftPlan across = fft_plan(width, scratch);
  const FftPlan down = fft_plan(rows, scratch + p.column_table);
  parallel_for(context.pool, ceil_div(rows, kFourierRows), [&](size_t group, size_t worker) {
    const size_t first = group * kFourierRows;
    fourier_rows_f32_f32_ref(across, p.x.f32(first), std::min(kFourierRows, rows - first),
                             y.f32(first), room(worker));
  });
  const size_t pairs = fourier_pairs(width);
  parallel_for(context.pool, ceil_div(pairs, kFftLanes), [&](size_t group, size_t worker) {
    const size_t first = group * kFftLanes;
    fourier_columns_f32_ref(down, width, first, std::min(kFftLanes, pairs - first), y.f32(),
                            room(worker));
  });
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kFourierSignature = {
    .inputs = {{.name = "x"}},
    .outputs = {{.name = "y", .width = Width::of(0), .rows = Rows::of(0)}},
};

Status bind_fourier(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kFourierSignature));
  const Tensor x = context.input(0), y = context.output(0);
  // Whole cache lines, so that no two threads share one.
  constexpr size_t kLine = kTensorAlignment / sizeof(float);
  const size_t longer = std::max(x.rows, x.width);
  auto& p = context.params<Params>();
  p.x = x;
  p.y = y;
  // Rows and width are below 2^31 each.
  p.column_table = round_up(fft_table_floats(x.width), kLine);
  p.rooms = p.column_table + round_up(fft_table_floats(x.rows), kLine);
  p.room = round_up(fourier_room_floats(longer), kLine);
  uint64_t all = 0, floats = 0, bytes = 0;
  if (!checked_mul(p.room, context.threads(), &all) || !checked_add(all, p.rooms, &floats) ||
      !checked_mul(floats, sizeof(float), &bytes) || bytes > SIZE_MAX / 2) {
    return context.fail("needs more scratch than there is address space");
  }
  context.request_scratch(static_cast<size_t>(bytes));
  *run = run_fourier;
  return Status::kOk;
}

}  // namespace oxbow
