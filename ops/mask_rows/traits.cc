#include "ops/traits.h"

#include "ops/mask_rows/mask_rows.h"

namespace oxbow {

extern const OpTraits mask_rows_traits;
const OpTraits mask_rows_traits = {
    .code = schema::OpCode::MaskRows,
    .signature = &kMaskRowsSignature,
};

}  // namespace oxbow
