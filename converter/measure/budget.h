#pragma once

// Where bits are worth most. Each matrix alone is rounded to four bits in the float model, and what that changes is measured; then
// bits are spent where they save most, until there are no more.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "converter/graph.h"
#include "converter/measure/quality.h"
#include "converter/passes/passes.h"
#include "converter/writer.h"

namespace oxbow::convert {

/// What a matrix of four bits costs, the others being float.
struct MatrixCost {
  /// Mean KL, or what the cosine lacks.
  double loss = 0;
  /// Relative error of its weights.
  double error = 0;
};
/// By name.
using MatrixCosts = std::map<std::string, MatrixCost>;

/// `file` is packed from `graph`, all float, and is afterwards what it was.
MatrixCosts measure_matrices(const Graph& graph, DraftFile& file, const Judge& judge,
                             const std::set<std::string>& names,
                             const std::function<void(size_t done, size_t all)>& progress);

/// A way to store all matrices.
struct StoredMatrices {
  std::string format;
  /// By name.
  std::map<std::string, uint64_t> bytes;
  WeightErrors errors;
};

/// How a matrix is stored in the end.
struct SpentBits {
  std::string format;
  /// Of a weight.
  double bits = 0;
  /// What is left of its cost: losses go with squares of errors.
  double loss = 0;
};

/// At most `bits` for a weight, on average over all matrices that there are costs of. `ways`: the smallest first. Throws
/// UsageError when there are too few.
std::map<std::string, SpentBits> spend_bits(const Graph& graph, const MatrixCosts& costs,
                                            const std::vector<StoredMatrices>& ways, double bits);

}  // namespace oxbow::convert
