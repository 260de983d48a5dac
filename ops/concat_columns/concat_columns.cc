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

constexpr OpSignature kConcatColumnsSignature = {
    .by_row = true,
    .inputs = {{.name = "x", .rows = Rows::of(0), .most = kMaxConcatInputs}},
    .outputs = {{.name = "y", .rows = Rows::of(0)}},
};

Status bind_concat_columns(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kConcatColumnsSignature));
  const size_t count = context.input_count();
  auto& p = context.params<Params>();
  p.count = count;
  p.y = context.output(0);
  size_t width = 0;
  for (size_t i = 0; i < count; ++i) {
    p.inputs[i] = context.input(i);
    // Checked at each input: the sum of two widths fits into any size_t, that of eight may not.
    width += p.inputs[i].width;
    if (width > p.y.width) break;
  }
  OXB_TRY(check_width(context, p.y, width));
  *run = run_concat_columns;
  return Status::kOk;
}

}  // namespace oxbow
