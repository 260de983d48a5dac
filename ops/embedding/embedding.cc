#include "ops/embedding/embedding.h"

#include <cinttypes>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "schema/model_generated.h"

namespace oxbow {
namespace {

template <typename Element>
struct Params {
  Tensor tokens, table, y;
  float scale;
  uint32_t first;
  bool partial;
  EmbeddingKernel<Element> kernel;
};

template <typename Element>
Status run_embedding(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params<Element>*>(params);
  Tensor y = p.y;
  const uint32_t rows = context.rows(p.tokens);
  for (uint32_t row = 0; row < rows; ++row) {
    // Ids are below the limit that bind compared with the end of the table, but may be below its
    // start. A stray index would read other memory, and two comparisons per row cost nothing.
    const auto id = static_cast<uint32_t>(*p.tokens.i32(row));
    const uint32_t index = id - p.first;
    if (id < p.first || index >= p.table.rows) {
      if (!p.partial) {
        return fail(context.error, Status::kInvalidArgument,
                    "token %u of '%s' is %u, expected below %" PRIu64 " and not below %u", row,
                    p.tokens.name, id, uint64_t{p.first} + p.table.rows, p.first);
      }
      std::memset(y.f32(row), 0, y.stride());
    } else {
      const std::byte* from = p.table.data + index * p.table.stride();
      const float scale =
          std::is_same_v<Element, int8_t> ? *p.table.row_scales(index) * p.scale : p.scale;
      p.kernel(reinterpret_cast<const Element*>(from), y.width, scale, y.f32(row));
    }
  }
  return Status::kOk;
}

template <typename Element>
EmbeddingKernel<Element> pick_kernel(bool reference_only) {
#define OXB_KERNEL(element, isa, fn)                \
  if constexpr (std::is_same_v<element, Element>) { \
    if (may_use(isa, reference_only)) return fn;    \
  }
#include "ops/embedding/kernels.inc"
#undef OXB_KERNEL
  return nullptr;
}

template <typename Element>
Status keep(BindContext& context, const Tensor& tokens, const Tensor& table, const Tensor& y,
            const schema::EmbeddingOptions& options, RunFunction* run) {
  auto& p = context.params<Params<Element>>();
  p = {tokens,
       table,
       y,
       options.scale(),
       options.first(),
       options.partial(),
       pick_kernel<Element>(context.reference_only())};
  *run = run_embedding<Element>;
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kEmbeddingSignature = {
    .options = schema::OpOptions::EmbeddingOptions,
    .by_row = true,
    .inputs = {{.name = "ids", .role = Role::kIds, .types = kI32, .width = Width::exactly(1)},
               // Row counts that change with a run would make the limit of the ids meaningless.
               {.name = "table",
                .role = Role::kWeight,
                .types = kF32 | kI8OneScale | kF16 | kBF16,
                .rows = Rows::fixed()}},
    .outputs = {{.name = "y", .width = Width::of(1), .rows = Rows::of(0)}},
};

Status bind_embedding(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kEmbeddingSignature));
  const auto* options = context.step().options_as_EmbeddingOptions();
  if (!std::isfinite(options->scale())) {
    return context.fail("scale is %g, expected a finite number", double{options->scale()});
  }
  const Tensor tokens = context.input(0);
  const Tensor table = context.input(1);
  const Tensor y = context.output(0);
  const uint64_t end = uint64_t{options->first()} + table.rows;
  if (tokens.limit == 0 || (tokens.limit > end && !options->partial())) {
    return context.fail("tensor '%s' has values below %u, expected a limit from 1 to %" PRIu64
                        ", where the %u rows of '%s' end",
                        tokens.name, tokens.limit, end, table.rows, table.name);
  }
  switch (table.type) {
    case DataType::kF16:
      return keep<F16>(context, tokens, table, y, *options, run);
    case DataType::kBF16:
      return keep<BF16>(context, tokens, table, y, *options, run);
    case DataType::kI8:
      return keep<int8_t>(context, tokens, table, y, *options, run);
    default:
      return keep<float>(context, tokens, table, y, *options, run);
  }
}

}  // namespace oxbow
