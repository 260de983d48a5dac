#include "ops/token_mask/token_mask.h"

#include "schema/model_generated.h"

namespace oxbow {
namespace {

struct Params {
  Tensor tokens, mask;
  uint32_t pad_token;
};

Status run_token_mask(RunContext& context, const void* params) {
  const auto& p = *static_cast<const Params*>(params);
  Tensor mask = p.mask;
  const uint32_t rows = context.rows(p.tokens);
  for (uint32_t row = 0; row < rows; ++row) {
    *mask.i32(row) = static_cast<uint32_t>(*p.tokens.i32(row)) == p.pad_token ? 0 : 1;
  }
  return Status::kOk;
}

}  // namespace

constexpr OpSignature kTokenMaskSignature = {
    .options = schema::OpOptions::TokenMaskOptions,
    .by_row = true,
    .inputs = {{.name = "tokens", .role = Role::kIds, .types = kI32, .width = Width::exactly(1)}},
    .outputs = {{.name = "mask",
                 .role = Role::kIds,
                 .types = kI32,
                 .width = Width::exactly(1),
                 .rows = Rows::of(0)}},
};

Status bind_token_mask(BindContext& context, RunFunction* run) {
  OXB_TRY(check_signature(context, kTokenMaskSignature));
  const auto* options = context.step().options_as_TokenMaskOptions();
  const Tensor tokens = context.input(0);
  const Tensor mask = context.output(0);
  // Readers may rely on it.
  if (mask.limit < 2) {
    return context.fail("tensor '%s' has values below %u, expected a limit of at least 2",
                        mask.name, mask.limit);
  }
  auto& p = context.params<Params>();
  p = {tokens, mask, options->pad_token()};
  *run = run_token_mask;
  return Status::kOk;
}

}  // namespace oxbow
