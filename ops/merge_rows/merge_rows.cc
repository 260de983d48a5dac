#include "ops/merge_rows/merge_rows.h"

#include <cstring>

namespace oxbow {
namespace {

Status run_merge_rows(RunContext& context, const void* params) {
  const auto& p = *static_cast<const MergeRowsParams*>(params);
  Tensor y = p.y;
  const size_t count = context.rows(p.x);
  const int32_t* mask = p.mask.i32();
  uint32_t marked = 0;
  for (size_t row = 0; row < count; ++row) marked += mask[row] != 0 ? 1 : 0;
  OXB_TRY(check_marked_rows(context, p, marked));
  size_t next = 0;
  for (size_t row = 0; row < count; ++row) {
    const float* from = mask[row] != 0 ? p.rows.f32(next++) : p.x.f32(row);
    // memmove: x and y may be one state.
    std::memmove(y.f32(row), from, y.stride());
  }
  return Status::kOk;
}

}  // namespace

Status check_marked_rows(RunContext& context, const MergeRowsParams& params, uint32_t marked) {
  const uint32_t rows = context.rows(params.rows);
  if (marked == rows) return Status::kOk;
  return fail(context.error, Status::kInvalidArgument,
              "the mask '%s' marks %u rows, '%s' has %u to put there", params.mask.name, marked,
              params.rows.name, rows);
}

constexpr OpSignature kMergeRowsSignature = {
    .inputs = {{.name = "x"},
               {.name = "rows", .width = Width::of(0)},
               {.name = "mask",
                .role = Role::kIds,
                .types = kI32,
                .width = Width::exactly(1),
                .rows = Rows::of(0)}},
    .outputs = {{.name = "y", .width = Width::of(0), .rows = Rows::of(0)}},
};

Status bind_merge_rows(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kMergeRowsSignature));
  const Tensor x = context.input(0);
  const Tensor rows = context.input(1);
  const Tensor mask = context.input(2);
  const Tensor y = context.output(0);
  auto& p = context.params<MergeRowsParams>();
  p = {x, rows, mask, y};
  *run = run_merge_rows;
  return Status::kOk;
}

}  // namespace oxbow
