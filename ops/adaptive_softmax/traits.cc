#include "ops/traits.h"

#include "ops/adaptive_softmax/adaptive_softmax.h"

namespace oxbow {

extern const OpTraits adaptive_softmax_traits;
const OpTraits adaptive_softmax_traits = {
    .code = schema::OpCode::AdaptiveSoftmax,
    .signature = &kAdaptiveSoftmaxSignature,
};

}  // namespace oxbow
