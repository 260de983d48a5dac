#include "ops/merge_rows/merge_rows.h"

#include <cstring>

#include "ops/common/checks.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x, rows, mask, y;
};

Status run_merge_rows(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  const size_t count = context.rows(p.x);
  const int32_t* mask = p.mask.i32();
  uint32_t marked = 0;
  for (size_t row = 0; row < count; ++row) marked += mask[row] != 0 ? 1 : 0;
  if (marked != context.rows(p.rows)) {
    return fail(context.error, Status::kInvalidArgument,
                "the mask '%s' marks %u rows, '%s' has %u to put there", p.mask.name, marked,
                p.rows.name, context.rows(p.rows));
  }
  size_t next = 0;
  for (size_t row = 0; row < count; ++row) {
    const float* from = mask[row] != 0 ? p.rows.f32(next++) : p.x.f32(row);
    // memmove: x and y may be one state.
    std::memmove(y.f32(row), from, y.stride());
  }
  return Status::kOk;
}

}  // namespace

Status bind_merge_rows(BindContext& context, RunFunction* run) {
  OXB_TRY(check_counts(context, 3, 1));
  const Tensor x = context.input(0);
  const Tensor rows = context.input(1);
  const Tensor mask = context.input(2);
  const Tensor y = context.output(0);
  for (const Tensor& tensor : {x, rows, y}) {
    OXB_TRY(check_f32(context, tensor));
    OXB_TRY(check_width(context, tensor, x.width));
  }
  OXB_TRY(check_type(context, mask, DataType::kI32));
  OXB_TRY(check_width(context, mask, 1));
  OXB_TRY(check_same_rows(context, x, mask));
  OXB_TRY(check_same_rows(context, x, y));
  auto& p = context.params<Params>();
  p = {x, rows, mask, y};
  *run = run_merge_rows;
  return Status::kOk;
}

}  // namespace oxbow
