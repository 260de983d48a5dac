#include "ops/pad_rows/pad_rows.h"

#include <algorithm>
#include <cstring>

#include "schema/model_generated.h"

namespace oxbow {
namespace {

uint64_t padded(uint64_t rows, uint32_t multiple, uint32_t above) {
  return rows <= above ? rows : round_up(rows, uint64_t{multiple});
}

Status run_pad_rows(RunContext& context, const void* params) {
  const auto& p = *static_cast<const PadRowsParams*>(params);
  Tensor y = p.y;
  const size_t rows = context.rows(p.x);
  uint32_t all = 0;
  OXB_TRY(count_padded_rows(context, p, &all));
  if (rows != 0) std::memcpy(y.i32(), p.x.i32(), rows * sizeof(int32_t));
  std::fill_n(y.i32() + rows, all - rows, p.value);
  return Status::kOk;
}

Status check_multiple(BindContext& context) {
  if (context.step().options_as_PadRowsOptions()->multiple() != 0) return Status::kOk;
  return context.fail("pads to a multiple of 0");
}

uint64_t all_rows(const StepView& view) {
  const auto& options = *view.step().options_as_PadRowsOptions();
  return padded(view.input(0).rows, options.multiple(), options.above());
}

}  // namespace

Status count_padded_rows(RunContext& context, const PadRowsParams& params, uint32_t* all) {
  *all = static_cast<uint32_t>(padded(context.rows(params.x), params.multiple, params.above));
  return context.set_rows(params.y, *all);
}

constexpr OpSignature kPadRowsSignature = {
    .options = schema::OpOptions::PadRowsOptions,
    .check_options = check_multiple,
    .inputs = {{.name = "x", .role = Role::kIds, .types = kI32, .width = Width::exactly(1)}},
    .outputs = {{.name = "y",
                 .role = Role::kIds,
                 .types = kI32,
                 .width = Width::exactly(1),
                 .rows = Rows::counted(0, all_rows)}},
};

Status bind_pad_rows(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kPadRowsSignature));
  const auto* options = context.step().options_as_PadRowsOptions();
  const Tensor x = context.input(0);
  const Tensor y = context.output(0);
  // Readers rely on the limit.
  if (x.limit > y.limit || options->value() < 0 ||
      static_cast<uint32_t>(options->value()) >= y.limit) {
    return context.fail("pads values below %u with %d, the limit of '%s' is %u", x.limit,
                        options->value(), y.name, y.limit);
  }
  context.params<PadRowsParams>() = {x, y, options->multiple(), options->above(), options->value()};
  *run = run_pad_rows;
  return Status::kOk;
}

}  // namespace oxbow
