#include "ops/embedding/embedding.h"

#include <cinttypes>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "runtime/base/checked.h"
#include "runtime/base/hadamard.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor tokens, table, y;
  float scale;
  uint32_t first;
  uint32_t turned;
  bool partial;
  bool reference_only;
  /// Row `index` of the table, times `scale`.
  void (*take)(const Params& p, size_t index, float* y);
};

Status run_embedding(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
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
      p.take(p, index, y.f32(row));
      if (p.turned != 0) hadamard_row(y.f32(row), y.width, p.turned);
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
void take_row(const Params& p, size_t index, float* y) {
  const std::byte* from = p.table.data + index * p.table.stride();
  float scale = p.scale;
  if (std::is_same_v<Element, int8_t>) scale = *p.table.row_scales(index) * scale;
  const EmbeddingKernel<Element> kernel = pick_kernel<Element>(p.reference_only);
  kernel(reinterpret_cast<const Element*>(from), p.y.width, scale, y);
}

/// Of int8 in blocks of eight rows by four columns.
void take_i8_block_row(const Params& p, size_t index, float* y) {
  const size_t groups = ceil_div(size_t{p.y.width}, kBlockColumns);
  const auto* codes =
      reinterpret_cast<const int8_t*>(p.table.data) +
      (index / kBlockRows * groups * kBlockRows + index % kBlockRows) * kBlockColumns;
  const float scale = *p.table.row_scales(index) * p.scale;
  for (size_t i = 0; i < p.y.width; ++i) {
    const size_t group = i / kBlockColumns;
    y[i] =
        static_cast<float>(codes[group * kBlockRows * kBlockColumns + i % kBlockColumns]) * scale;
  }
}

/// Of four bits in blocks of eight rows by 32 columns.
template <typename Block>
void take_i4_row(const Params& p, size_t index, float* y) {
  const size_t row = index % kBlockRows;
  const auto* blocks = reinterpret_cast<const Block*>(p.table.data) +
                       index / kBlockRows * ceil_div(size_t{p.y.width}, kI4BlockColumns);
  for (size_t i = 0; i < p.y.width; ++i) {
    const Block& block = blocks[i / kI4BlockColumns];
    float value =
        static_cast<float>(code_of(block, row, i % kI4BlockColumns)) * to_f32(block.scales[row]);
    if constexpr (std::is_same_v<Block, I4MinBlock>) value = value + to_f32(block.mins[row]);
    y[i] = value * p.scale;
  }
}

}  // namespace

constexpr OpSignature kEmbeddingSignature = {
    .options = schema::OpOptions::EmbeddingOptions,
    .by_row = true,
    .inputs = {{.name = "ids", .role = Role::kIds, .types = kI32, .width = Width::exactly(1)},
               // Row counts that change with a run would make the limit of the ids meaningless.
               {.name = "table",
                .role = Role::kWeight,
                .types = kF32 | kI8OneScale | kI8Blocks | kF16 | kBF16 | kI4 | kI4Min,
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
  if (options->turned() != 0 && !is_hadamard_block(options->turned(), table.width)) {
    return context.fail("turned is %u, expected a power of two from 16 to 512 that divides %u",
                        options->turned(), table.width);
  }
  auto& p = context.params<Params>();
  p = {tokens,
       table,
       y,
       options->scale(),
       options->first(),
       options->turned(),
       options->partial(),
       context.reference_only(),
       nullptr};
  switch (table.type) {
    case DataType::kF16:
      p.take = take_row<F16>;
      break;
    case DataType::kBF16:
      p.take = take_row<BF16>;
      break;
    case DataType::kI4:
      p.take = take_i4_row<I4Block>;
      break;
    case DataType::kI4Min:
      p.take = take_i4_row<I4MinBlock>;
      break;
    case DataType::kI8:
      p.take = table.layout == Layout::kRowMajor ? take_row<int8_t> : take_i8_block_row;
      break;
    default:
      p.take = take_row<float>;
  }
  *run = run_embedding;
  return Status::kOk;
}

}  // namespace oxbow
