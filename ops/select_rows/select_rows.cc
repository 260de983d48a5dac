#include "ops/select_rows/select_rows.h"

#include <cstring>

#include "ops/common/checks.h"

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
  context.symbols[y.rows_symbol] = selected;
  return Status::kOk;
}

}  // namespace

Status bind_select_rows(BindContext& context, RunFunction* run) {
  OXB_TRY(check_counts(context, 2, 1));
  const Tensor x = context.input(0);
  const Tensor mask = context.input(1);
  const Tensor y = context.output(0);
  OXB_TRY(check_f32_or_i8(context, x));
  OXB_TRY(check_type(context, mask, DataType::kI32));
  OXB_TRY(check_width(context, mask, 1));
  OXB_TRY(check_same_rows(context, x, mask));
  OXB_TRY(check_type(context, y, x.type));
  OXB_TRY(check_width(context, y, x.width));
  if (y.scale_groups != x.scale_groups) {
    return context.fail("tensor '%s' is %s, expected %u scales a row as '%s'", y.name,
                        describe(y).text, x.scale_groups, x.name);
  }
  if (y.rows_symbol < 0 || y.rows_symbol == x.rows_symbol ||
      !context.may_set_symbol(y.rows_symbol)) {
    return context.fail("tensor '%s' must have a row symbol of its own", y.name);
  }
  // The mask may select every row.
  const uint32_t symbol_max = context.symbol_max(y.rows_symbol);
  if (symbol_max < x.rows || y.rows < symbol_max) {
    return context.fail("tensor '%s' has room for %u rows and its symbol for %u, expected %u",
                        y.name, y.rows, symbol_max, x.rows);
  }
  auto& p = context.params<Params>();
  p = {x, mask, y};
  *run = run_select_rows;
  return Status::kOk;
}

}  // namespace oxbow
