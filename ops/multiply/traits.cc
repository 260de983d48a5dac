#include "ops/traits.h"

#include "ops/multiply/multiply.h"

namespace oxbow {

extern const OpTraits multiply_traits;
const OpTraits multiply_traits = {
    .code = schema::OpCode::Multiply,
    .signature = &kMultiplySignature,
};

}  // namespace oxbow
