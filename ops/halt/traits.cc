#include "ops/traits.h"

#include "ops/halt/halt.h"

namespace oxbow {

extern const OpTraits halt_traits;
const OpTraits halt_traits = {
    .code = schema::OpCode::Halt,
    .signature = &kHaltSignature,
    .exact_input = 0,
};

}  // namespace oxbow
