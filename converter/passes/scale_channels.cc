// Moves the size of columns from what enters a matrix into the matrix.

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "converter/passes/passes.h"
#include "converter/passes/transform.h"
#include "converter/passes/uses.h"
#include "ops/traits.h"

namespace oxbow::convert {
namespace {

/// What lies beyond is a column that is never used, or one that statistics know nothing of.
constexpr double kLargestScale = 4096;

class ChannelScaler {
 public:
  ChannelScaler(Graph& graph, const QuantizeOptions& options)
      : graph_(graph), options_(options), uses_(graph) {}

  size_t scale(const ChannelSizes& sizes) {
    struct Site {
      uint32_t x;
      std::vector<uint32_t> matrices;
      std::vector<float> scales;
    };
    // All scales are those of the matrices as they came: a matrix may be two things, what is entered and what is in front
    // of another.
    std::vector<Site> sites;
    for (uint32_t x = 0; x < graph_.model.tensors.size(); ++x) {
      const auto found = sizes.find(graph_.tensor(x).name);
      if (found == sizes.end() || found->second.size() != graph_.tensor(x).width) continue;
      std::vector<uint32_t> matrices = matrices_of(x);
      if (matrices.empty()) continue;
      std::vector<float> scales = scales_of(matrices, found->second);
      sites.push_back({x, std::move(matrices), std::move(scales)});
    }
    size_t count = 0;
    for (const Site& site : sites) {
      if (!fold(site.x, site.scales)) continue;
      for (const uint32_t matrix : site.matrices) {
        graph_.weights.at(matrix).divide_columns(site.scales);
      }
      ++count;
    }
    return count;
  }

 private:
  /// The matrices that read x; none when anything else does, or one of them reads something else as well.
  std::vector<uint32_t> matrices_of(uint32_t x) const {
    std::vector<uint32_t> matrices;
    if (graph_.tensor(x).kind != schema::TensorKind::Activation || uses_.is_seen(x)) return {};
    for (const Use& reader : uses_.readers(x)) {
      const std::optional<uint32_t> matrix = matrix_of(reader);
      if (!matrix) return {};
      for (const Use& other : uses_.readers(*matrix)) {
        const OpTraits& traits = op_traits(other.step->op);
        if (traits.multiplied_input < 0 ||
            other.step->inputs[static_cast<size_t>(traits.multiplied_input)] != x) {
          return {};
        }
      }
      if (std::find(matrices.begin(), matrices.end(), *matrix) == matrices.end()) {
        matrices.push_back(*matrix);
      }
    }
    return matrices;
  }

  std::optional<uint32_t> matrix_of(const Use& reader) const {
    const OpTraits& traits = op_traits(reader.step->op);
    const auto weight = weight_input(traits);
    if (!weight || traits.multiplied_input != static_cast<int>(reader.place)) return std::nullopt;
    const uint32_t matrix = reader.step->inputs[weight->input];
    // Columns of different sizes would not have three values, nor the codes that are to be kept.
    const bool may_change = graph_.weights.contains(matrix) && !graph_.ternary.contains(matrix) &&
                            !options_.groups.contains(graph_.tensor(matrix).name);
    return may_change ? std::optional(matrix) : std::nullopt;
  }

  std::vector<float> scales_of(const std::vector<uint32_t>& matrices,
                               const std::vector<float>& sizes) const {
    std::vector<double> squares(sizes.size());
    double rows = 0;
    for (const uint32_t matrix : matrices) {
      for_each_part(graph_.weights.at(matrix), [&](uint32_t, const std::vector<float>& values) {
        for (size_t i = 0; i < values.size(); ++i) {
          squares[i % sizes.size()] += double{values[i]} * values[i];
        }
      });
      rows += graph_.tensor(matrix).rows;
    }
    std::vector<float> scales(sizes.size(), 1.0f);
    for (size_t i = 0; i < sizes.size(); ++i) {
      const double scale = std::sqrt(std::sqrt(squares[i] / rows) / sizes[i]);
      if (scale > 1 / kLargestScale && scale < kLargestScale) scales[i] = static_cast<float>(scale);
    }
    return scales;
  }

  /// Multiplies the columns of a tensor, all of whose readers will know, where it is made. False: it cannot be, and
  /// nothing has changed.
  bool fold(uint32_t tensor, std::span<const float> scales) {
    schema::StepT* step = uses_.producer(tensor);
    if (step == nullptr || step->outputs.size() != 1) return false;
    const auto scaled_by = op_traits(step->op).scaled_by;
    if (scaled_by == nullptr) return false;
    for (const std::vector<ScaledInput>& way : scaled_by(*step)) {
      if (!way.empty() && fold_into(*step, way, scales)) return true;
    }
    return false;
  }

  bool fold_into(schema::StepT& step, const std::vector<ScaledInput>& way,
                 std::span<const float> scales) {
    // What can be refused comes first: a way is gone whole or not at all.
    if (way[0].part == ScaledInput::kBefore) return fold_before(step.inputs[way[0].input], scales);
    for (const ScaledInput& scaled : way) {
      const uint32_t weight = step.inputs[scaled.input];
      const bool is_matrix = scaled.part == ScaledInput::kRows;
      if (is_matrix && options_.groups.contains(graph_.tensor(weight).name)) return false;
      if (is_matrix ? uses_.readers(weight).size() != 1
                    : graph_.tensor(weight).width != scales.size()) {
        return false;
      }
    }
    for (const ScaledInput& scaled : way) {
      if (scaled.part == ScaledInput::kRows) {
        graph_.weights.at(step.inputs[scaled.input]).multiply_rows(scales);
      } else {
        graph_.weights.at(own_weight(step, scaled.input)).multiply_columns(scales);
      }
    }
    return true;
  }

  /// The same for a tensor in front, which must have no other reader.
  bool fold_before(uint32_t tensor, std::span<const float> scales) {
    return graph_.tensor(tensor).kind == schema::TensorKind::Activation &&
           graph_.tensor(tensor).width == scales.size() && uses_.readers(tensor).size() == 1 &&
           !uses_.is_seen(tensor) && fold(tensor, scales);
  }

  /// A weight that only this step reads: a copy, if need be.
  uint32_t own_weight(schema::StepT& step, size_t input) {
    const uint32_t weight = step.inputs[input];
    if (uses_.readers(weight).size() == 1) return weight;
    auto copy = std::make_unique<schema::TensorT>(graph_.tensor(weight));
    const uint32_t added = static_cast<uint32_t>(graph_.model.tensors.size());
    copy->name += ".scaled" + std::to_string(added);
    graph_.model.tensors.push_back(std::move(copy));
    graph_.weights[added] = graph_.weights.at(weight);
    step.inputs[input] = added;
    return added;
  }

  Graph& graph_;
  const QuantizeOptions& options_;
  const Uses uses_;
};

}  // namespace

size_t scale_channels(Graph& graph, const ChannelSizes& sizes, const QuantizeOptions& options) {
  split_shared_tables(graph, options);
  return ChannelScaler(graph, options).scale(sizes);
}

}  // namespace oxbow::convert
