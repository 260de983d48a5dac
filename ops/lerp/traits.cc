#include "ops/traits.h"

#include "ops/lerp/lerp.h"

namespace oxbow {

extern const OpTraits lerp_traits;
const OpTraits lerp_traits = {
    .code = schema::OpCode::Lerp,
    .signature = &kLerpSignature,
};

}  // namespace oxbow
