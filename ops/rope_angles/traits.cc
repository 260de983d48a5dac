#include "ops/traits.h"

#include "ops/rope_angles/rope_angles.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  const schema::RopeAnglesOptionsT& o = *step.options.AsRopeAnglesOptions();
  return o.last != 0 ? "to position " + std::to_string(o.last) : "";
}

}  // namespace

extern const OpTraits rope_angles_traits;
const OpTraits rope_angles_traits = {
    .code = schema::OpCode::RopeAngles,
    .signature = &kRopeAnglesSignature,
    .category = OpCategory::kEmbedding,
    .options = options,
};

}  // namespace oxbow
