#include "ops/repeat_rows/repeat_rows.h"

#include <cstring>

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x, shape, y;
  int64_t group, offset;
  uint32_t length;
  bool has_shape;
};

/// Sets the rows of y by the shape.
Status count_rows(RunContext& context, const Params& p) {
  const int32_t first = context.rows(p.shape) == 0 ? 0 : p.shape.i32()[0];
  const uint64_t rows = static_cast<uint64_t>(first < 0 ? 0 : first) * p.length;
  if (first < 0 || rows > p.y.rows) {
    return fail(context.error, Status::kInvalidArgument,
                "input '%s' begins with %d, expected 0 to %u", p.shape.name, first,
                p.y.rows / p.length);
  }
  return context.set_rows(p.y, static_cast<uint32_t>(rows));
}

Status run_repeat_rows(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  if (p.has_shape) OXB_TRY(count_rows(context, p));
  const int64_t have = context.rows(p.x);
  Tensor y = p.y;
  const size_t rows = context.rows(p.y);
  for (size_t t = 0; t < rows; ++t) {
    const int64_t at = static_cast<int64_t>(t) + p.offset;
    if (at < 0 || at / p.group >= have) {
      std::memset(y.f32(t), 0, y.stride());
    } else {
      std::memcpy(y.f32(t), p.x.f32(static_cast<size_t>(at / p.group)), y.stride());
    }
  }
  return Status::kOk;
}

size_t has_shape(const schema::Step& step) {
  return step.options_as_RepeatRowsOptions()->has_shape();
}

}  // namespace

constexpr OpSignature kRepeatRowsSignature = {
    .options = schema::OpOptions::RepeatRowsOptions,
    .inputs = {{.name = "x"},
               {.name = "shape",
                .role = Role::kIds,
                .types = kI32,
                .width = Width::exactly(1),
                .count = has_shape}},
    .outputs = {{.name = "y", .width = Width::of(0)}},
};

Status bind_repeat_rows(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kRepeatRowsSignature));
  const auto* options = context.step().options_as_RepeatRowsOptions();
  if (options->group() == 0) return context.fail("group is 0, expected at least 1");
  if (options->has_shape() != (options->length() != 0)) {
    return context.fail("has a length without a shape, or a shape without a length");
  }
  const Tensor y = context.output(0);
  OXB_TRY(check_room(context, y));
  auto& p = context.params<Params>();
  p.x = context.input(0);
  p.y = y;
  p.has_shape = options->has_shape();
  if (p.has_shape) {
    p.shape = context.input(1);
    if (y.rows_symbol < 0 || !context.may_set_symbol(y.rows_symbol)) {
      return context.fail("tensor '%s' is %s, expected a row symbol of its own", y.name,
                          describe(y).text);
    }
  }
  p.group = options->group();
  p.offset = options->offset();
  p.length = options->length();
  *run = run_repeat_rows;
  return Status::kOk;
}

}  // namespace oxbow
