#include "ops/mask_rows/mask_rows.h"

#include <cstring>

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

constexpr OpSignature kMaskRowsSignature = {
    .by_row = true,
    .inputs = {{.name = "x"},
               {.name = "mask",
                .role = Role::kIds,
                .types = kI32,
                .width = Width::exactly(1),
                .rows = Rows::of(0)}},
    .outputs = {{.name = "y", .width = Width::of(0), .rows = Rows::of(0)}},
};

Status bind_mask_rows(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kMaskRowsSignature));
  const Tensor x = context.input(0);
  const Tensor mask = context.input(1);
  const Tensor y = context.output(0);
  auto& p = context.params<Params>();
  p = {x, mask, y};
  *run = run_mask_rows;
  return Status::kOk;
}

}  // namespace oxbow
