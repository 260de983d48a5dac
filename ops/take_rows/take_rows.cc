#include "ops/take_rows/take_rows.h"

#include <cstring>

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x, y;
  bool from_start;
};

Status run_take_rows(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  const uint32_t have = context.rows(p.x);
  const uint32_t wanted = context.rows(p.y);
  // The caller chooses both numbers, each within its own maximum.
  if (wanted > have) {
    return fail(context.error, Status::kInvalidArgument,
                "the %s %u rows of '%s' are wanted, it has %u", p.from_start ? "first" : "last",
                wanted, p.x.name, have);
  }
  if (wanted == 0) return Status::kOk;  // There may be no memory for none.
  const size_t first = p.from_start ? 0 : have - wanted;
  void* to = y.data != nullptr ? static_cast<void*>(y.data) : context.caller_output;
  // memmove: x and y may be one state.
  std::memmove(to, p.x.data + first * p.x.stride(), wanted * y.stride());
  if (y.type == DataType::kI8) {
    std::memmove(y.scales, p.x.row_scales(first), size_t{wanted} * y.scale_groups * sizeof(float));
  }
  return Status::kOk;
}

}  // namespace

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
  // A step of older files has no options, which means the last rows.
  bool from_start = false;
  if (context.step().options_type() != schema::OpOptions::NONE) {
    const auto* options = context.step().options_as_TakeRowsOptions();
    if (options == nullptr) return fail_options(context, "TakeRowsOptions");
    from_start = options->from_start();
  }
  auto& p = context.params<Params>();
  p = {x, y, from_start};
  *run = run_take_rows;
  return Status::kOk;
}

}  // namespace oxbow
