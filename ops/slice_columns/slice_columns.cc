#include "ops/slice_columns/slice_columns.h"

#include <cstring>

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor x, y;
  size_t first;
};

Status run_slice_columns(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  parallel_for(context.pool, context.rows(p.x), [&](size_t row, size_t) {
    std::memmove(y.f32(row), p.x.f32(row) + p.first, y.stride());
  });
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kSliceColumnsSignature = {
    .options = schema::OpOptions::SliceColumnsOptions,
    .by_row = true,
    .inputs = {{.name = "x"}},
    .outputs = {{.name = "y", .rows = Rows::of(0)}},
};

Status bind_slice_columns(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kSliceColumnsSignature));
  const auto* options = context.step().options_as_SliceColumnsOptions();
  const Tensor x = context.input(0);
  const Tensor y = context.output(0);
  const uint32_t first = options->first();
  if (uint64_t{first} + y.width > x.width) {
    return context.fail("tensor '%s' is %s, which has no %u columns from %u on", x.name,
                        describe(x).text, y.width, first);
  }
  auto& p = context.params<Params>();
  p = {x, y, first};
  *run = run_slice_columns;
  return Status::kOk;
}

}  // namespace oxbow
