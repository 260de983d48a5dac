#include "ops/embedding/embedding.h"

#include <cmath>
#include <type_traits>

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor tokens, table, y;
  float scale;
  EmbeddingF32Kernel f32_kernel;
  EmbeddingI8Kernel i8_kernel;
};

Status run_embedding(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor y = p.y;
  const uint32_t rows = context.rows(p.tokens);
  for (uint32_t row = 0; row < rows; ++row) {
    // The session holds tokens below the limit that bind compared with the table. A stray index
    // would read other memory, and one comparison per row costs nothing.
    const auto token = static_cast<uint32_t>(*p.tokens.i32(row));
    if (token >= p.table.rows) {
      return fail(context.error, Status::kInvalidArgument,
                  "token %u of '%s' is %u, expected below %u", row, p.tokens.name, token,
                  p.table.rows);
    }
    if (p.table.type == DataType::kF32) {
      p.f32_kernel(p.table.f32(token), y.width, p.scale, y.f32(row));
    } else {
      p.i8_kernel(p.table.i8(token), y.width, *p.table.row_scales(token) * p.scale, y.f32(row));
    }
  }
  return Status::kOk;
}

template <typename Element, typename Kernel>
Kernel pick_kernel(bool reference_only) {
#define OXB_KERNEL(element, isa, fn)                \
  if constexpr (std::is_same_v<element, Element>) { \
    if (may_use(isa, reference_only)) return fn;    \
  }
#include "ops/embedding/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

}  // namespace

Status bind_embedding(BindContext& context, RunFunction* run) {
  OXB_TRY(check_counts(context, 2, 1));
  const auto* options = context.step().options_as_EmbeddingOptions();
  if (options == nullptr) return fail_options(context, "EmbeddingOptions");
  if (!std::isfinite(options->scale())) {
    return context.fail("scale is %g, expected a finite number", double{options->scale()});
  }
  const Tensor tokens = context.input(0);
  const Tensor table = context.input(1);
  const Tensor y = context.output(0);
  OXB_TRY(check_type(context, tokens, DataType::kI32));
  OXB_TRY(check_width(context, tokens, 1));
  OXB_TRY(check_f32_or_i8(context, table));
  // Row counts that change with a run would make the limit below meaningless.
  if (table.rows_symbol >= 0) {
    return context.fail("tensor '%s' is %s, expected a table of fixed rows", table.name,
                        describe(table).text);
  }
  if (table.type == DataType::kI8 && table.scale_groups != 1) {
    return context.fail("tensor '%s' is %s, expected one scale a row", table.name,
                        describe(table).text);
  }
  if (tokens.limit == 0 || tokens.limit > table.rows) {
    return context.fail(
        "tensor '%s' has values below %u, expected a limit from 1 to the %u rows of '%s'",
        tokens.name, tokens.limit, table.rows, table.name);
  }
  OXB_TRY(check_f32(context, y));
  OXB_TRY(check_width(context, y, table.width));
  OXB_TRY(check_same_rows(context, tokens, y));

  auto& p = context.params<Params>();
  const bool reference_only = context.reference_only();
  p = {tokens,
       table,
       y,
       options->scale(),
       pick_kernel<float, EmbeddingF32Kernel>(reference_only),
       pick_kernel<int8_t, EmbeddingI8Kernel>(reference_only)};
  *run = run_embedding;
  return Status::kOk;
}

}  // namespace oxbow
