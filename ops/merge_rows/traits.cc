#include "ops/traits.h"

#include "ops/merge_rows/merge_rows.h"

namespace oxbow {

extern const OpTraits merge_rows_traits;
const OpTraits merge_rows_traits = {
    .code = schema::OpCode::MergeRows,
    .signature = &kMergeRowsSignature,
};

}  // namespace oxbow
