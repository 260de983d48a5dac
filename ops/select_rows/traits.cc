#include "ops/traits.h"

#include "ops/select_rows/select_rows.h"

namespace oxbow {

extern const OpTraits select_rows_traits;
const OpTraits select_rows_traits = {
    .code = schema::OpCode::SelectRows,
    .signature = &kSelectRowsSignature,
};

}  // namespace oxbow
