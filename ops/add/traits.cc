#include "ops/traits.h"

#include "ops/add/add.h"

namespace oxbow {

extern const OpTraits add_traits;
const OpTraits add_traits = {
    .code = schema::OpCode::Add,
    .signature = &kAddSignature,
};

}  // namespace oxbow
