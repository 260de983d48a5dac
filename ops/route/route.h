#pragma once

// The expert of each row: the one of the greatest score, the first of equal ones, with its probability
// 1 / sum over e of exp(score_e - greatest). NaN is never greatest; where all are NaN the first expert is taken. Rows beyond
// the capacity of their expert have the probability 0, so that what it gives for them counts as nothing.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

extern const OpSignature kRouteSignature;
/// Input scores [T, experts]; outputs routes I32 [T, 1] with the limit `experts`, chosen [T, 2]: the expert's number, its
/// probability.
Status bind_route(BindContext& context, RunFunction* run);

}  // namespace oxbow
