#pragma once

#include <cstdint>
#include <vector>

#include "schema/model_generated.h"

namespace oxbow {

/// What each step contributes to macs_per_token().
std::vector<double> step_macs(const schema::ModelT& model, const schema::EntryPointT& entry);

/// Multiply-accumulates of matrices and attention for one token that this entry point is given: every memory full, one
/// row of logits, rows that are compressed shared out over the tokens they come from.
uint64_t macs_per_token(const schema::ModelT& model, const schema::EntryPointT& entry);

/// Of the last entry point, which is the one that streams.
uint64_t macs_per_token(const schema::ModelT& model);

}  // namespace oxbow
