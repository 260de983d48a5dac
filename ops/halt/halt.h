#pragma once

// One round of adaptive computation time (Graves 2016, Dehghani et al. 2019), behind the layer that all rounds share.
// Each row has three counts, all 0 before the first round: h, the sum of its halting probabilities; r, its remainder; u,
// its rounds. With p the probability of this round, all in float:
//
//   runs   = h < 1                               halts = runs and h + p > threshold
//   goes on: h += p, weight = p                  halts: r += 1 - h, h += r, weight = r
//   u += 1 if it runs                            mix = x * weight + mix * (1 - weight), weight 0 if it did not run
//
// Rows that have halted still move, and rows that have not look at them: nothing of a round may be left out as long as
// one row runs. The next x has all rows if some row has h < threshold, else none, and rounds without rows cost nothing.

#include "ops/common/signature.h"
#include "runtime/op.h"

namespace oxbow {

inline constexpr uint32_t kHaltCounts = 3;

extern const OpSignature kHaltSignature;
/// Inputs p [n, 1], x [n, W], and but for the first round counts [T, 3], mix [T, W]; outputs counts, mix, next x. F32. n is T
/// or 0 in every run.
Status bind_halt(BindContext& context, RunFunction* run);

}  // namespace oxbow
