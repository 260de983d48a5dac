#pragma once

// What several attentions over parts of the keys gave, as one: with x_n [T, heads * W] and their log-sum-exps
// l_n [T, heads], for each row and head
//
//   w_n = exp(l_n - max_n l_n),  y = sum_n w_n x_n / sum_n w_n
//
// in the order of n. Where every l_n is -inf nothing was seen, and y is zeros; a NaN among them makes y NaN.

#include <cstddef>

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

inline constexpr size_t kMaxMixed = 32;

extern const OpSignature kMixAttentionSignature;
Status bind_mix_attention(BindContext& context, RunFunction* run);

}  // namespace oxbow
