#include "ops/traits.h"

#include "ops/token_mask/token_mask.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  const schema::TokenMaskOptionsT& o = *step.options.AsTokenMaskOptions();
  return "without token " + std::to_string(o.pad_token);
}

}  // namespace

extern const OpTraits token_mask_traits;
const OpTraits token_mask_traits = {
    .code = schema::OpCode::TokenMask,
    .signature = &kTokenMaskSignature,
    .options = options,
};

}  // namespace oxbow
