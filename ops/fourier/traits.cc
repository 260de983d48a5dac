#include "ops/traits.h"

#include "ops/fourier/fourier.h"

namespace oxbow {

extern const OpTraits fourier_traits;
const OpTraits fourier_traits = {
    .code = schema::OpCode::Fourier,
    .signature = &kFourierSignature,
    .category = OpCategory::kAttention,
};

}  // namespace oxbow
