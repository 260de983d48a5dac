#include "ops/take_rows/take_rows.h"

#include <cstring>

#include "schema/model_generated.h"

namespace oxbow {
namespace {

Status run_take_rows(RunContext& context, const void* params) {
  const auto& p = *static_cast<const TakenRows*>(params);
  Tensor y = p.y;
  uint32_t first = 0, wanted = 0;
  OXB_TRY(find_taken_rows(context, p, &first, &wanted));
  if (wanted == 0) return Status::kOk;  // There may be no memory for none.
  void* to = y.data != nullptr ? static_cast<void*>(y.data) : context.caller_output;
  // memmove: x and y may be one state.
  std::memmove(to, p.x.data + first * p.x.stride(), wanted * y.stride());
  if (y.type == DataType::kI8) {
    std::memmove(y.scales, p.x.row_scales(first), size_t{wanted} * y.scale_groups * sizeof(float));
  }
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kTakeRowsSignature = {
    .options = schema::OpOptions::TakeRowsOptions,
    .may_lack_options = true,
    .inputs = {{.name = "x", .types = kF32 | kI8}},
    .outputs = {{.name = "y",
                 .types = kF32 | kI8,
                 .width = Width::of(0),
                 .type_of = 0,
                 .to_caller = true}},
};

bool takes_from_start(const schema::Step& step) {
  // A step of older files has no options, which means the last rows.
  const auto* options = step.options_as_TakeRowsOptions();
  return options != nullptr && options->from_start();
}

Status find_taken_rows(const RunContext& context, const TakenRows& rows, uint32_t* first,
                       uint32_t* wanted) {
  const uint32_t have = context.rows(rows.x);
  *wanted = context.rows(rows.y);
  // The caller chooses both numbers, each within its own maximum.
  if (*wanted > have) {
    return fail(context.error, Status::kInvalidArgument,
                "the %s %u rows of '%s' are wanted, it has %u", rows.from_start ? "first" : "last",
                *wanted, rows.x.name, have);
  }
  *first = rows.from_start ? 0 : have - *wanted;
  return Status::kOk;
}

Status bind_take_rows(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kTakeRowsSignature));
  const Tensor x = context.input(0);
  const Tensor y = context.output_or_caller(0);
  context.params<TakenRows>() = {x, y, takes_from_start(context.step())};
  *run = run_take_rows;
  return Status::kOk;
}

}  // namespace oxbow
