#pragma once

// y_t = x_t W_e^T + bias_e with e = routes[t]: a linear layer for each expert, of which every row passes one. Rows of one
// expert are brought together, so that its weights are read once for all of them and those of experts nobody chose
// not at all. The arithmetic of each row is that of ops/linear, whose kernels these are: a row's result depends on no
// other row.
//
// The experts' matrices [N, K] lie one behind the other, each with rows of zeros up to a multiple of 8, so that
// blocks of int8 weights belong to one expert.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

extern const OpSignature kRoutedLinearSignature;
/// Inputs x F32 or I8 [T, K], routes I32 [T, 1], weight F32 or I8 in blocks, bias [experts, N] if the options say so.
Status bind_routed_linear(BindContext& context, RunFunction* run);

}  // namespace oxbow
