#include "ops/token_mask/token_mask.h"

#include "ops/common/checks.h"
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

Status bind_token_mask(BindContext& context, RunFunction* run) {
  OXB_TRY(check_counts(context, 1, 1));
  const auto* options = context.step().options_as_TokenMaskOptions();
  if (options == nullptr) return fail_options(context, "TokenMaskOptions");
  const Tensor tokens = context.input(0);
  const Tensor mask = context.output(0);
  for (const Tensor& tensor : {tokens, mask}) {
    OXB_TRY(check_type(context, tensor, DataType::kI32));
    OXB_TRY(check_width(context, tensor, 1));
  }
  OXB_TRY(check_same_rows(context, tokens, mask));
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
