#include "ops/traits.h"

#include "ops/activate/activate.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  const schema::ActivateOptionsT& o = *step.options.AsActivateOptions();
  return in_lower_case(schema::EnumNameActivation(o.activation));
}

}  // namespace

extern const OpTraits activate_traits;
const OpTraits activate_traits = {
    .code = schema::OpCode::Activate,
    .signature = &kActivateSignature,
    .options = options,
};

}  // namespace oxbow
