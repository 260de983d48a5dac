#pragma once

// The float graph is run over a text, and what enters and leaves each matrix is recorded: for the sizes of its columns
// (scale_channels), and for static scales.
//
//   x       the tensor that will be int8       scale of Tensor.static_scale
//   x W^T + bias, before activation and residual, so the graph must not be fused
//                                              scale of LinearOptions.output_scale
//
// A scale is chosen to lose least: among all clips c the one with the smallest sum of squared errors, where
// a value within c is rounded to steps of c / 127 and one beyond it becomes c.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "converter/graph.h"
#include "converter/measure/model_runner.h"
#include "converter/passes/fit.h"
#include "converter/passes/transform.h"

namespace oxbow::convert {

/// How often a tensor's values have which magnitude.
class Spread {
 public:
  /// Numbers that are not finite are passed over.
  void add(std::span<const float> values);
  /// The scale of int8 codes that loses least; 0 when there was nothing but zeros.
  float best_scale() const;

 private:
  /// By the upper bits of the magnitude: 32 bins for each power of two.
  std::vector<uint64_t> bins_;
};

struct Calibration {
  /// By the name of the float tensor that enters matrices.
  std::map<std::string, float> inputs;
  /// The same for rows that are turned (Tensor.hadamard).
  std::map<std::string, float> turned_inputs;
  /// By the names of x and of the matrix.
  std::map<std::pair<std::string, std::string>, float> outputs;
};

/// Keeps what is to be recorded readable; before memory is planned.
void observe_matrices(Graph& graph);

/// Runs `file`, made of the observed graph: how large each column of what enters matrices is.
ChannelSizes measure_channels(const Graph& graph, const std::string& file,
                              const TokenSource& source);

/// Runs `file`, made of the observed graph: the rows that enter matrices, put aside in `store`. Behind tokens that quality is
/// measured on come `source`'s, and random ones if these are few.
MatrixInputs record_inputs(const Graph& graph, const std::string& file, const TokenSource& source,
                           const std::shared_ptr<FloatFile>& store);

/// Runs `file`, made of the observed graph.
Calibration calibrate(const Graph& graph, const std::string& file, const TokenSource& source);

/// Gives the int8 tensors of a quantised graph their static scales. What the calibration never saw keeps a scale for
/// each row; how many matrices that are is returned.
size_t set_static_scales(Graph& graph, const Calibration& calibration);

}  // namespace oxbow::convert
