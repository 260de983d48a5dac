#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "schema/model_generated.h"

namespace oxbow {

/// What each step contributes to macs_per_token().
std::vector<double> step_macs(const schema::ModelT& model, const schema::EntryPointT& entry);

/// What a step multiplies and reads, to hold its time against.
struct StepWork {
  /// 0: nothing, or it is not known how often. Of each token of a run, and of the run whatever its tokens are.
  double macs_per_token = 0.0, macs_per_run = 0.0;
  /// Weights, and of memories all rows. Of a run of so many tokens: a layer of experts reads those that they can choose.
  double bytes(double tokens) const { return std::min(1.0, tokens * share_per_token) * all_bytes; }
  double all_bytes = 0.0, share_per_token = 1.0;
  /// The numbers hold when the memories are full, and for one token.
  bool needs_full_memories = false;
  /// The products are of int8 numbers, or of floats.
  bool int8 = false;
};
std::vector<StepWork> step_work(const schema::ModelT& model, const schema::EntryPointT& entry);

/// Multiply-accumulates of matrices and attention for one token that this entry point is given: every memory full, one
/// row of logits, rows that are compressed shared out over the tokens they come from.
uint64_t macs_per_token(const schema::ModelT& model, const schema::EntryPointT& entry);

/// Of the last entry point, which is the one that streams.
uint64_t macs_per_token(const schema::ModelT& model);

}  // namespace oxbow
