#include "ops/take_rows/take_rows.h"

#include <cstring>

#include "ops/common/checks.h"
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
  OXB_TRY(check_counts(context, 1, 1));
  const Tensor x = context.input(0);
  const Tensor y = context.output_or_caller(0);
  OXB_TRY(check_f32_or_i8(context, x));
  OXB_TRY(check_type(context, y, x.type));
  OXB_TRY(check_width(context, y, x.width));
  if (y.scale_groups != x.scale_groups) {
    return context.fail("tensor '%s' is %s, expected %u scales a row as '%s'", y.name,
                        describe(y).text, x.scale_groups, x.name);
  }
  if (context.step().options_type() != schema::OpOptions::NONE &&
      context.step().options_as_TakeRowsOptions() == nullptr) {
    return fail_options(context, "TakeRowsOptions");
  }
  context.params<TakenRows>() = {x, y, takes_from_start(context.step())};
  *run = run_take_rows;
  return Status::kOk;
}

}  // namespace oxbow
