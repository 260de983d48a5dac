#include "ops/concat_columns/concat_columns.h"

#include <cstring>

#include "ops/common/checks.h"

namespace oxbow {
namespace {

struct Params {
  Tensor inputs[kMaxConcatInputs];
  size_t count;
  Tensor y;
};

Status run_concat_columns(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  parallel_for(context.pool, context.rows(p.y), [&](size_t row, size_t) {
    float* to = y.f32(row);
    for (size_t i = 0; i < p.count; ++i) {
      const Tensor& input = p.inputs[i];
      std::memmove(to, input.f32(row), input.stride());
      to += input.width;
    }
  });
  return Status::kOk;
}

}  // namespace

Status bind_concat_columns(BindContext& context, RunFunction* run) {
  const size_t count = context.input_count();
  if (count == 0 || count > kMaxConcatInputs || context.output_count() != 1) {
    return context.fail("has %zu inputs and %zu outputs, expected 1 to %zu and 1", count,
                        context.output_count(), kMaxConcatInputs);
  }
  auto& p = context.params<Params>();
  p.count = count;
  p.y = context.output(0);
  OXB_TRY(check_f32(context, p.y));
  size_t width = 0;
  for (size_t i = 0; i < count; ++i) {
    p.inputs[i] = context.input(i);
    OXB_TRY(check_f32(context, p.inputs[i]));
    OXB_TRY(check_same_rows(context, p.y, p.inputs[i]));
    // Checked at each input: the sum of two widths fits into any size_t, that of eight may not.
    width += p.inputs[i].width;
    if (width > p.y.width) break;
  }
  OXB_TRY(check_width(context, p.y, width));
  *run = run_concat_columns;
  return Status::kOk;
}

}  // namespace oxbow
