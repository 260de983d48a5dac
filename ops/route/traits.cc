#include "ops/traits.h"

#include "ops/route/route.h"

namespace oxbow {

extern const OpTraits route_traits;
const OpTraits route_traits = {
    .code = schema::OpCode::Route,
    .signature = &kRouteSignature,
    .exact_input = 0,
};

}  // namespace oxbow
