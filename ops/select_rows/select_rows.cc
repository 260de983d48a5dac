#include "ops/select_rows/select_rows.h"

#include <cstring>

namespace oxbow {
namespace {

struct Params {
  Tensor x, mask, y;
};

Status run_select_rows(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  const size_t rows = context.rows(p.x);
  const int32_t* mask = p.mask.i32();
  uint32_t selected = 0;
  for (size_t row = 0; row < rows; ++row) {
    if (mask[row] == 0) continue;
    std::memcpy(y.data + selected * y.stride(), p.x.data + row * y.stride(), y.stride());
    if (y.type == DataType::kI8) {
      std::memcpy(y.row_scales(selected), p.x.row_scales(row), y.scale_groups * sizeof(float));
    }
    ++selected;
  }
  return context.set_rows(y, selected);
}

}  // namespace

constexpr OpSignature kSelectRowsSignature = {
    .inputs = {{.name = "x", .types = kF32 | kI8},
               {.name = "mask",
                .role = Role::kIds,
                .types = kI32,
                .width = Width::exactly(1),
                .rows = Rows::of(0)}},
    .outputs = {{.name = "y",
                 .types = kF32 | kI8,
                 .width = Width::of(0),
                 .rows = Rows::counted(0),
                 .type_of = 0}},
};

Status bind_select_rows(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kSelectRowsSignature));
  const Tensor x = context.input(0);
  const Tensor mask = context.input(1);
  const Tensor y = context.output(0);
  auto& p = context.params<Params>();
  p = {x, mask, y};
  *run = run_select_rows;
  return Status::kOk;
}

}  // namespace oxbow
