#include "ops/traits.h"

#include "ops/concat_rows/concat_rows.h"

namespace oxbow {

extern const OpTraits concat_rows_traits;
const OpTraits concat_rows_traits = {
    .code = schema::OpCode::ConcatRows,
    .signature = &kConcatRowsSignature,
};

}  // namespace oxbow
