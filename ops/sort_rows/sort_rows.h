#pragma once

// For each of several lists of keys the order that sorts it, equal keys staying as they were. Keys are counted, so that
// the time is in proportion to their number and their limit.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

extern const OpSignature kSortRowsSignature;
/// Inputs keys and perhaps others to take instead, which a caller gives.
Status bind_sort_rows(BindContext& context, RunFunction* run);

}  // namespace oxbow
