#pragma once

// Sums or means of rows that follow each other; see schema::PoolRowsOptions. For a row x[r] of T, with s[r] = x[r - front]
// and zeros for r < front:
//
//   y[j] = sum over r in group j of factor[r - first row of j] * s[r]      divided by the group's rows if `mean`
//
// Sums are taken from the first row to the last. F32.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

extern const OpSignature kPoolRowsSignature;
Status bind_pool_rows(BindContext& context, RunFunction* run);

}  // namespace oxbow
