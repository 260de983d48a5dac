#include "ops/traits.h"

#include "ops/activate/activate.h"

namespace oxbow {
namespace {

std::vector<std::vector<ScaledInput>> scaled_by(const schema::StepT& step) {
  if (step.options.AsActivateOptions()->activation != schema::Activation::Relu) return {};
  return {{{0, ScaledInput::kBefore}}};
}

std::string options(const schema::StepT& step) {
  const schema::ActivateOptionsT& o = *step.options.AsActivateOptions();
  return in_lower_case(schema::EnumNameActivation(o.activation));
}

}  // namespace

extern const OpTraits activate_traits;
const OpTraits activate_traits = {
    .code = schema::OpCode::Activate,
    .signature = &kActivateSignature,
    .scaled_by = scaled_by,
    .options = options,
};

}  // namespace oxbow
