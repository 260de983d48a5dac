#include "ops/traits.h"

#include "ops/feature_map/feature_map.h"

namespace oxbow {
namespace {

std::string options(const schema::StepT& step) {
  const schema::FeatureMapOptionsT& o = *step.options.AsFeatureMapOptions();
  return in_words({counted(o.heads, "heads"), "order " + std::to_string(o.order)});
}

}  // namespace

extern const OpTraits feature_map_traits;
const OpTraits feature_map_traits = {
    .code = schema::OpCode::FeatureMap,
    .signature = &kFeatureMapSignature,
    .options = options,
};

}  // namespace oxbow
