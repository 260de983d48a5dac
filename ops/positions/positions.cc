#include "ops/positions/positions.h"

#include <cinttypes>

#include "ops/common/checks.h"
#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor tokens, ids;
  uint32_t offset, wrap;
  /// Negative: none.
  int32_t pad_token;
  uint32_t pad_position;
  uint32_t divisor;
};

Status run_positions(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor ids = p.ids;
  const uint32_t rows = context.rows(p.tokens);
  uint64_t position = context.position;
  for (uint32_t row = 0; row < rows; ++row) {
    if (p.pad_token >= 0 && *p.tokens.i32(row) == p.pad_token) {
      *ids.i32(row) = static_cast<int32_t>(p.pad_position);
      continue;
    }
    const uint64_t step = position / p.divisor;
    if (p.wrap == 0 && step >= ids.limit - p.offset) {
      return fail_position(context, row, step, ids.limit - p.offset);
    }
    const uint64_t wrapped = p.wrap == 0 ? step : step % p.wrap;
    *ids.i32(row) = static_cast<int32_t>(p.offset + wrapped);
    ++position;
  }
  return Status::kOk;
}

/// Every id that run can write is below the limit that readers rely on.
Status check_limit(BindContext& context, const Tensor& ids,
                   const schema::PositionsOptions& options) {
  const uint32_t limit = ids.limit;
  if (limit == 0 || limit > uint32_t{INT32_MAX}) {
    return context.fail("tensor '%s' has values below %u, expected a limit from 1 to %u", ids.name,
                        limit, uint32_t{INT32_MAX});
  }
  // Without a wrap at least one position must be there.
  const uint64_t positions = options.wrap() == 0 ? 1 : options.wrap();
  if (options.offset() + positions > limit) {
    return context.fail("offset %u and wrap %u reach the limit of '%s', %u", options.offset(),
                        options.wrap(), ids.name, limit);
  }
  if (options.pad_token() >= 0 && options.pad_position() >= limit) {
    return context.fail("pad position %u reaches the limit of '%s', %u", options.pad_position(),
                        ids.name, limit);
  }
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kPositionsSignature = {
    .options = schema::OpOptions::PositionsOptions,
    // Without a pad token only their number matters, and they may as well be vectors.
    .inputs = {{.name = "tokens", .types = kF32 | kI8 | kI32}},
    .outputs = {{.name = "ids",
                 .role = Role::kIds,
                 .types = kI32,
                 .width = Width::exactly(1),
                 .rows = Rows::of(0)}},
};

Status fail_position(const RunContext& context, uint32_t row, uint64_t position, uint32_t end) {
  return fail(context.error, Status::kInvalidArgument,
              "token %u is at position %" PRIu64 ": the model has no more positions than %u", row,
              position, end);
}

Status bind_positions(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kPositionsSignature));
  const auto* options = context.step().options_as_PositionsOptions();
  const Tensor tokens = context.input(0);
  const Tensor ids = context.output(0);
  if (options->pad_token() >= 0) {
    OXB_TRY(check_type(context, tokens, DataType::kI32));
    OXB_TRY(check_width(context, tokens, 1));
  }
  OXB_TRY(check_limit(context, ids, *options));
  if (options->divisor() == 0) return context.fail("the divisor is 0");

  auto& p = context.params<Params>();
  p = {tokens,
       ids,
       options->offset(),
       options->wrap(),
       options->pad_token(),
       options->pad_position(),
       options->divisor()};
  *run = run_positions;
  return Status::kOk;
}

}  // namespace oxbow
