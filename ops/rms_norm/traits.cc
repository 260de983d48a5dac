#include "ops/common/norm_traits.h"
#include "ops/rms_norm/rms_norm.h"

namespace oxbow {

extern const OpTraits rms_norm_traits;
const OpTraits rms_norm_traits = {
    .code = schema::OpCode::RmsNorm,
    .signature = &kRmsNormSignature,
    .category = OpCategory::kNorm,
    .scaled_by = norm_scaled_by,
};

}  // namespace oxbow
