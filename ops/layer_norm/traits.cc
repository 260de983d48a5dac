#include "ops/common/norm_traits.h"
#include "ops/layer_norm/layer_norm.h"

namespace oxbow {

extern const OpTraits layer_norm_traits;
const OpTraits layer_norm_traits = {
    .code = schema::OpCode::LayerNorm,
    .signature = &kLayerNormSignature,
    .category = OpCategory::kNorm,
    .scaled_by = norm_scaled_by,
};

}  // namespace oxbow
