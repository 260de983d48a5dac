#pragma once

// What is done to a graph so that int8 loses less of it. Results stay what they are but for rounding; no architecture is
// known. In this order:
//
//   drop_key_biases  before remove_dead: what is the same for all keys of a query, and so for none
//   scale_channels   before quantize: columns that stick out of what enters a matrix are made smaller where they are made,
//                    and the matrix larger there
//   turn_matrices    behind quantize: what enters matrices is turned in blocks before it is quantised
//                    (Tensor.hadamard), and the matrices are turned beforehand
//   group_rows       behind turn_matrices: what enters matrices of four bits gets a scale for each 32 columns
//   turn_keys        behind quantize: queries and keys are turned head by head behind their rotary positions
//   pack             rounds weights by what enters them (fit.h)

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "converter/graph.h"
#include "converter/passes/passes.h"

namespace oxbow::convert {

/// Root mean square of each column, by the name of the float tensor that enters matrices.
using ChannelSizes = std::map<std::string, std::vector<float>>;

// All return how many tensors they have changed.

/// Only of keys that nothing turns or adds to on their way.
size_t drop_key_biases(Graph& graph);

/// x_j is multiplied by s_j = sqrt(size of the matrices' column j / size of x_j) in the step that makes x: a norm with
/// weights, a matrix, or one side of a product, through what leaves columns alone. Only where nothing else reads x.
/// `options`: how the graph will be quantised.
size_t scale_channels(Graph& graph, const ChannelSizes& sizes, const QuantizeOptions& options);

/// Only int8 tensors that matrices alone read, and matrices all of whose inputs can be turned. `options`: how the graph was
/// quantised; `seen`: blocks have the size that suits these rows best, and the largest where there are none; `keep_chains`: not
/// what one matrix gives to the next, which accelerators then take as one.
size_t turn_matrices(Graph& graph, const QuantizeOptions& options, const MatrixInputs& seen = {},
                     bool keep_chains = false);

/// A scale for each 32 columns in int8 tensors that only matrices of four bits read, and that are not turned: turned rows
/// stick out nowhere.
size_t group_rows(Graph& graph);

/// Only where all that a query meets are keys with rotary positions of their own.
size_t turn_keys(Graph& graph);

/// The same for every part of a graph that has not been quantised and of one that has.
struct Transform {
  bool unbias_keys = false;
  bool scale = false;
  bool turn = false;
  bool turn_keys = false;
  /// Matrices that others have quantised in groups stay as they are, all else notwithstanding.
  bool keep_groups = false;
  bool group_rows = false;
  /// Weights are rounded by a Fit.
  bool fit = false;

  friend bool operator==(const Transform&, const Transform&) = default;
};

/// In words, for reports.
std::string transform_text(const Transform& transform);

}  // namespace oxbow::convert
