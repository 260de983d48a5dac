#pragma once

// Which rows of a memory are kept when it gives rows up: of each group that leaves, the one that attention used most
// (Rae et al. 2019, "most used"; schema::MostUsedOptions has the inputs). All rows held and all new ones are in one
// line, the oldest first; row r of n, seen by every query from its own on:
//
//   score(i, r) = scale * ((q_i + u) . k_r + q_i . R[t] + B[t])      t = min(i - r, rows of R - 1)
//   usage_r     = usage_r + sum over heads and this run's queries i >= r of exp(score(i, r) - log_sum_i)
//
//   of rows [g * group, (g + 1) * group) the one with the greatest usage_r / (n - r), the oldest of equals
//
// Weights are not kept by attention, which has never all of them at once; from the logarithm of their sum each is had
// again. NaN is never the greatest.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

extern const OpSignature kMostUsedSignature;

Status bind_most_used(BindContext& context, RunFunction* run);

}  // namespace oxbow
