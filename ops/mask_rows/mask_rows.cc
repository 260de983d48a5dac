#include "ops/mask_rows/mask_rows.h"

#include <cstring>

#include "ops/common/checks.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x, mask, y;
};

Status run_mask_rows(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  const size_t bytes = y.stride();
  const uint32_t rows = context.rows(p.x);
  for (uint32_t row = 0; row < rows; ++row) {
    // y may be x, which memcpy does not allow.
    if (*p.mask.i32(row) != 0) {
      std::memmove(y.f32(row), p.x.f32(row), bytes);
    } else {
      std::memset(y.f32(row), 0, bytes);
    }
  }
  return Status::kOk;
}

}  // namespace

Status bind_mask_rows(BindContext& context, RunFunction* run) {
  OXB_TRY(check_counts(context, 2, 1));
  const Tensor x = context.input(0);
  const Tensor mask = context.input(1);
  const Tensor y = context.output(0);
  OXB_TRY(check_f32(context, x));
  OXB_TRY(check_type(context, mask, DataType::kI32));
  OXB_TRY(check_width(context, mask, 1));
  OXB_TRY(check_same_rows(context, x, mask));
  OXB_TRY(check_f32(context, y));
  OXB_TRY(check_width(context, y, x.width));
  OXB_TRY(check_same_rows(context, x, y));

  auto& p = context.params<Params>();
  p = {x, mask, y};
  *run = run_mask_rows;
  return Status::kOk;
}

}  // namespace oxbow
