#include "ops/traits.h"

#include "ops/layer_norm/layer_norm.h"

namespace oxbow {
namespace {

/// The columns of weights and biases.
std::vector<std::vector<ScaledInput>> scaled_by(const schema::StepT& step) {
  std::vector<ScaledInput> weights;
  for (size_t i = 1; i < step.inputs.size(); ++i) weights.push_back({i, ScaledInput::kColumns});
  return {weights};
}

}  // namespace

extern const OpTraits layer_norm_traits;
const OpTraits layer_norm_traits = {
    .code = schema::OpCode::LayerNorm,
    .signature = &kLayerNormSignature,
    .category = OpCategory::kNorm,
    .scaled_by = scaled_by,
};

}  // namespace oxbow
