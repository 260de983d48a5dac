#include "ops/concat_rows/concat_rows.h"

#include <cstring>

#include "ops/common/checks.h"

namespace oxbow {
namespace {

struct Params {
  Tensor inputs[kMaxConcatRowsInputs];
  size_t count;
  Tensor y;
};

Status run_concat_rows(RunContext&, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  size_t row = 0;
  for (size_t i = 0; i < p.count; ++i) {
    std::memcpy(y.f32(row), p.inputs[i].f32(), p.inputs[i].rows * y.stride());
    row += p.inputs[i].rows;
  }
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kConcatRowsSignature = {
    .inputs = {{.name = "x", .rows = Rows::fixed(), .most = kMaxConcatRowsInputs}},
    .outputs = {{.name = "y", .width = Width::of(0), .rows = Rows::fixed()}},
};

Status bind_concat_rows(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kConcatRowsSignature));
  auto& p = context.params<Params>();
  p.count = context.input_count();
  p.y = context.output(0);
  uint64_t rows = 0;
  for (size_t i = 0; i < p.count; ++i) {
    p.inputs[i] = context.input(i);
    OXB_TRY(check_width(context, p.inputs[i], p.y.width));
    rows += p.inputs[i].rows;
  }
  if (rows != p.y.rows) {
    return context.fail("'%s' is %s, expected %llu rows", p.y.name, describe(p.y).text,
                        static_cast<unsigned long long>(rows));
  }
  *run = run_concat_rows;
  return Status::kOk;
}

}  // namespace oxbow
