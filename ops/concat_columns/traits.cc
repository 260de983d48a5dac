#include "ops/traits.h"

#include "ops/concat_columns/concat_columns.h"

namespace oxbow {

extern const OpTraits concat_columns_traits;
const OpTraits concat_columns_traits = {
    .code = schema::OpCode::ConcatColumns,
    .signature = &kConcatColumnsSignature,
};

}  // namespace oxbow
