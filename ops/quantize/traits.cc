#include "ops/traits.h"

#include "ops/quantize/quantize.h"

namespace oxbow {

extern const OpTraits quantize_traits;
const OpTraits quantize_traits = {
    .code = schema::OpCode::Quantize,
    .signature = &kQuantizeSignature,
};

}  // namespace oxbow
