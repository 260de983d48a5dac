#include "ops/traits.h"

#include "ops/routed_linear/routed_linear.h"

namespace oxbow {
namespace {

/// Of one expert.
double macs(const schema::ModelT& model, const schema::EntryPointT&, const schema::StepT& step) {
  const schema::TensorT& weight = *model.tensors[step.inputs[2]];
  return static_cast<double>(model.tensors[step.outputs[0]]->width) * weight.width;
}

std::string options(const schema::StepT& step) {
  const schema::RoutedLinearOptionsT& o = *step.options.AsRoutedLinearOptions();
  return in_words({counted(o.experts, "experts"), o.has_bias ? "bias" : ""});
}

}  // namespace

extern const OpTraits routed_linear_traits;
const OpTraits routed_linear_traits = {
    .code = schema::OpCode::RoutedLinear,
    .signature = &kRoutedLinearSignature,
    .category = OpCategory::kMatrix,
    .multiplied_input = 0,
    .macs = macs,
    .options = options,
};

}  // namespace oxbow
