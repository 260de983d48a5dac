#pragma once

// Ranges of static dense steps that may go to an accelerator as one.

#include <cstdint>
#include <vector>

#include "converter/offload/offload.h"

namespace oxbow::convert {

/// Steps of an entry point, and the most rows of a run.
struct StepRange {
  uint32_t entry = 0, step = 0, steps = 1;
  uint32_t rows = 0;
  /// With int8 results.
  bool is_chain = false;
};

/// All dense steps with static int8 rows, those that lead only to the next one together with it.
std::vector<StepRange> find_chains(const schema::ModelT& model);

Chain read_chain(const schema::ModelT& model, const StepRange& range, const DataRegion& data);

}  // namespace oxbow::convert
