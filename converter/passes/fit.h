#pragma once

// Weights of few bits, rounded so that what a matrix computes changes least, and not each weight by itself: where inputs go
// together, the errors of their columns make up for each other.
//
// With the second moments H = sum of x x^T over rows x that enter the matrix, a row of weights with the errors e loses
// e H e^T. H = L L^T with L lower triangular, so this is the sum over columns j of (sum_{i >= j} e_i L_ij)^2. The last
// column is rounded first, and each one before it to where its own term is least. Every x counts the same however long it is,
// for otherwise a few huge rows decide alone.
//
// Some rows x are put aside. A row of weights that loses less on them when each weight is rounded by itself is left so: what was
// seen then says too little of what will come.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "converter/weight.h"

namespace oxbow::convert {

/// What enters matrices, of a run of the float graph.
struct MatrixInputs {
  /// Rows in pieces, by the name of their tensor.
  std::map<std::string, std::vector<Weight>> rows;
  /// The tensors that enter a matrix, by the matrix's name.
  std::map<std::string, std::set<std::string>> of;
};

/// Columns that get a scale together, and are rounded one after the other before all others hear of it.
inline constexpr size_t kFitColumns = 32;

class Fit {
 public:
  /// For `matrix`, and for all that the same enters and that were changed alike.
  Fit(const MatrixInputs& inputs, const std::set<std::string>& names, const Weight& matrix);

  /// value = code * scale + min.
  struct Scale {
    float scale, min = 0;
  };
  /// Of up to 32 columns of a row, of which the first is `column`, told what they would best be.
  using ScaleOf = std::function<Scale(size_t row, size_t column, std::span<const float> targets)>;
  /// Whole rows become codes from `least` to `most`.
  void round(std::span<float> rows, float least, float most, const ScaleOf& scale_of) const;

  /// Whether a row of weights with errors of its own, one for each column, does better on what was put aside than `fitted`.
  bool is_better(std::span<const float> errors, std::span<const float> fitted) const;

 private:
  /// Columns from `first` on, of which the rest knows nothing.
  struct Block {
    size_t first, size;
    /// L by rows, and 1 / L_jj.
    std::vector<float> triangle, inverse;
  };
  void round_batch(const Block& block, std::span<float> rows, size_t first_row, float least,
                   float most, const ScaleOf& scale_of) const;

  double loss(std::span<const float> errors) const;

  size_t width_;
  std::vector<Block> blocks_;
  /// What was put aside, column by column.
  std::vector<float> aside_;
};

}  // namespace oxbow::convert
