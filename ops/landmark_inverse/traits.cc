#include "ops/traits.h"

#include "ops/landmark_inverse/landmark_inverse.h"

namespace oxbow {
namespace {

/// For each row: four products of matrices in each iteration, the scores, and what is multiplied in the end.
double macs(const schema::ModelT& model, const schema::EntryPointT&, const schema::StepT& step) {
  const schema::LandmarkInverseOptionsT& o = *step.options.AsLandmarkInverseOptions();
  const schema::TensorT& q = *model.tensors[step.inputs[0]];
  const double landmarks = q.rows, heads = o.heads;
  return landmarks *
         (4.0 * o.iterations * heads * landmarks + q.width + model.tensors[step.inputs[2]]->width);
}

std::string options(const schema::StepT& step) {
  const schema::LandmarkInverseOptionsT& o = *step.options.AsLandmarkInverseOptions();
  return in_words({counted(o.heads, "heads"), counted(o.iterations, "iterations")});
}

}  // namespace

extern const OpTraits landmark_inverse_traits;
const OpTraits landmark_inverse_traits = {
    .code = schema::OpCode::LandmarkInverse,
    .signature = &kLandmarkInverseSignature,
    .category = OpCategory::kAttention,
    .macs = macs,
    .options = options,
};

}  // namespace oxbow
