#pragma once

// What happens to every graph between importer and writer, in this order. No pass knows an
// architecture.
//
//   fuse       activations and residual additions into the linear step before them
//   remove_dead   steps, states and weights nothing depends on
//   transform.h   what makes int8 lose less, around quantize
//   quantize   decides the type of every tensor and adds the steps that make int8 of float
//   plan       places activations and states in their regions
//   pack       turns float weights into the bytes of the file

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "converter/graph.h"
#include "converter/passes/weight_formats.h"

namespace oxbow::convert {

/// Weights that are stored otherwise than the rest.
struct KeptWeights {
  /// Of names, with * and ?.
  std::string pattern;
  /// A name in weight_formats.h.
  std::string format;
};

/// Matrices whose groups of 32 columns have 16 evenly spaced numbers at most: others have quantised them. By name.
struct FoundGroup {
  /// They need one beside the scale.
  bool has_min = false;
  /// Four bits hold them to the bit; else codes are kept, and scales and mins rounded to 16 bits.
  bool exact = true;
};
using FoundGroups = std::map<std::string, FoundGroup>;

struct QuantizeOptions {
  /// How matrices and the embedding are stored, by its name in weight_formats.h; "f32": everything stays float.
  std::string weights = kDefaultWeights;
  /// The first whose pattern matches counts.
  std::vector<KeptWeights> keep = {};
  /// With int4: matrices that keep their codes, and are neither scaled nor turned.
  FoundGroups groups = {};
  /// The inputs of matrices, keys, values and memories as int8. Needs weights that are not float. Without it only what
  /// enters int4 and ternary matrices is.
  bool activations = true;
  /// What enters matrices gets its scales from calibration, not from each row. Needs `activations`.
  bool static_scales = false;
  /// A table whose rows are looked up and which is a matrix too is stored once, as the matrix is.
  bool tie_tables = false;
  /// Rings of keys and values in four bits, where heads are as wide as a multiple of 32. Needs `activations`.
  bool i4_rings = false;
};

void fuse(Graph& graph);

/// `keep_states`: also states that are written and never read, to be looked at from outside.
void remove_dead(Graph& graph, bool keep_states);

void quantize(Graph& graph, const QuantizeOptions& options);

/// Rings of int8 rows become such of four bits where all who read them can; returns how many. Behind all that looks for int8.
size_t narrow_rings(Graph& graph);

/// Reads all matrices that four bits may hold but those that are stored otherwise anyway.
FoundGroups find_groups(const Graph& graph, const std::vector<KeptWeights>& keep);

/// A table that is also a matrix gets a copy for those who look up its rows. quantize does it too.
void split_shared_tables(Graph& graph, const QuantizeOptions& options);

/// Throws InputError when a tensor has a size no file can hold.
void plan(Graph& graph);

/// Sets the offsets of weights; returns the bytes of the data region.
uint64_t place_weights(Graph& graph);

/// Takes bytes of the data region; several threads call it. What it is not given is zero.
using WriteData = std::function<void(uint64_t offset, std::span<const std::byte> bytes)>;
/// Relative error of each weight that is not float32, by name: RMS of the difference over RMS of the values.
using WeightErrors = std::map<std::string, double>;

/// Makes the data region of a graph whose weights have their places. Matrices that `inputs` knows are rounded by a Fit. `done`,
/// unless it is empty, is told how far it is.
WeightErrors pack(const Graph& graph, const WriteData& write, const MatrixInputs& inputs = {},
                  const std::function<void(uint64_t bytes)>& done = {});

}  // namespace oxbow::convert
