// Marks int8 tensors that are turned before they are quantised, and turns the matrices that read them.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "converter/passes/transform.h"
#include "converter/passes/uses.h"
#include "ops/traits.h"
#include "runtime/base/hadamard.h"
#include "runtime/base/weight_blocks.h"

namespace oxbow::convert {
namespace {

using schema::DataType;
using schema::TensorKind;

/// Weights of three values have no more than three, and do not stay so when they are turned; nor do codes that are kept.
bool can_be_turned(const schema::TensorT& weight, const QuantizeOptions& options) {
  return (weight.type == DataType::I8 || is_in_groups(weight.type)) &&
         !options.groups.contains(weight.name);
}

/// Steps that look up rows of a matrix and can turn them back.
std::vector<schema::StepT*> lookups(const Uses& uses, uint32_t weight) {
  std::vector<schema::StepT*> steps;
  for (const Use& reader : uses.readers(weight)) {
    if (op_traits(reader.step->op).turn_back != nullptr) steps.push_back(reader.step);
  }
  return steps;
}

bool turns_output(const schema::StepT& step) {
  return op_traits(step.op).signature->output().turns;
}

/// Drops what is not good, and then what belongs to something dropped, until nothing changes. A link is a list of
/// tensors of which all are turned, or none.
void keep_whole(std::set<uint32_t>& chosen, const std::vector<std::vector<uint32_t>>& links) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::vector<uint32_t>& link : links) {
      const bool whole = std::all_of(link.begin(), link.end(),
                                     [&](uint32_t tensor) { return chosen.contains(tensor); });
      if (whole) continue;
      for (const uint32_t tensor : link) changed |= chosen.erase(tensor) != 0;
    }
  }
}

// Inputs of the matrices.

bool is_turnable_input(const Graph& graph, const Uses& uses, uint32_t index) {
  const schema::TensorT& tensor = graph.tensor(index);
  const schema::StepT* producer = uses.producer(index);
  return tensor.type == DataType::I8 && tensor.kind == TensorKind::Activation &&
         tensor.scale_groups == 1 && largest_hadamard_block(tensor.width) != 0 &&
         producer != nullptr && producer->outputs[0] == index && turns_output(*producer) &&
         !uses.is_seen(index) &&
         std::all_of(uses.readers(index).begin(), uses.readers(index).end(), [](const Use& reader) {
           return op_traits(reader.step->op).multiplied_input == static_cast<int>(reader.place);
         });
}

// The size of blocks.

/// Rows that are looked at.
constexpr size_t kMostMeasured = 128;

/// Of rows turned in such blocks, what rounding them loses as a part of their squares: in proportion to the square of the
/// largest element.
double loss_of_rounding(std::span<const float> rows, size_t width, size_t block) {
  std::vector<float> turned(rows.begin(), rows.end());
  hadamard_row(turned.data(), turned.size(), block);
  double loss = 0;
  for (size_t at = 0; at < turned.size(); at += width) {
    double squares = 0, largest = 0;
    for (const float x : std::span(turned).subspan(at, width)) {
      squares += double{x} * x;
      largest = std::max(largest, std::fabs(double{x}));
    }
    if (squares > 0 && std::isfinite(squares)) loss += largest * largest / squares;
  }
  return loss;
}

/// For what enters all of these matrices: where it goes one way, as behind a GELU, a large block makes one huge element of that.
size_t best_block(const Graph& graph, const MatrixInputs& inputs,
                  const std::set<uint32_t>& matrices) {
  const auto known = std::find_if(matrices.begin(), matrices.end(), [&](uint32_t matrix) {
    return inputs.of.contains(graph.tensor(matrix).name);
  });
  const Weight& weight = graph.weights.at(known != matrices.end() ? *known : *matrices.begin());
  const size_t largest = largest_hadamard_block(weight.width());
  if (known == matrices.end()) return largest;
  const auto names = inputs.of.find(graph.tensor(*known).name);
  std::vector<float> rows;
  for (const std::string& name : names->second) {
    const std::vector<Weight>& pieces = inputs.rows.at(name);
    for (const Weight& piece : pieces) {
      const size_t most = std::max<size_t>(kMostMeasured / pieces.size(), 1);
      const uint32_t count = std::min(piece.rows(), static_cast<uint32_t>(most));
      // How a text begins is unlike the rest.
      const std::vector<float> last = piece.read(piece.rows() - count, count);
      rows.insert(rows.end(), last.begin(), last.end());
    }
  }
  weight.change_inputs(rows);
  size_t best = largest;
  double least = loss_of_rounding(rows, weight.width(), largest);
  for (size_t block = largest / 2; block >= kMinHadamardBlock; block /= 2) {
    const double loss = loss_of_rounding(rows, weight.width(), block);
    if (loss >= least) continue;
    least = loss;
    best = block;
  }
  return best;
}

// Queries and keys.

/// The query of products, or one of their keys.
enum class Role : uint8_t { kNone, kQuery, kKey };
Role role_of(const Use& reader) {
  const OpTraits& traits = op_traits(reader.step->op);
  if (traits.head_products == nullptr) return Role::kNone;
  const std::vector<size_t> inputs = traits.head_products(*reader.step).inputs;
  if (reader.place == inputs[0]) return Role::kQuery;
  return std::find(inputs.begin(), inputs.end(), reader.place) == inputs.end() ? Role::kNone
                                                                               : Role::kKey;
}

bool stores(const Use& use) { return op_traits(use.step->op).stores_rows; }

/// A query, a key of this run, or remembered keys.
bool is_turnable_head(const Graph& graph, const Uses& uses, uint32_t index) {
  const schema::TensorT& tensor = graph.tensor(index);
  if (uses.is_seen(index) || tensor.initial >= 0) return false;
  const bool is_query = tensor.type == DataType::F32;
  for (const Use& reader : uses.readers(index)) {
    const Role role = role_of(reader);
    const bool good = is_query ? role == Role::kQuery : role == Role::kKey || stores(reader);
    if (!good) return false;
  }
  return std::all_of(uses.writers(index).begin(), uses.writers(index).end(),
                     [&](const Use& use) {
                       return tensor.kind == TensorKind::State
                                  ? tensor.type == DataType::I8 && stores(use)
                                  : op_traits(use.step->op).turns_heads;
                     }) &&
         !uses.writers(index).empty();
}

}  // namespace

size_t turn_matrices(Graph& graph, const QuantizeOptions& options, const MatrixInputs& seen,
                     bool keep_chains) {
  const Uses uses(graph);
  std::set<uint32_t> chosen;
  for (uint32_t i = 0; i < graph.model.tensors.size(); ++i) {
    if (!is_turnable_input(graph, uses, i)) continue;
    if (keep_chains && op_traits(uses.producer(i)->op).multiplied_input >= 0) continue;
    chosen.insert(i);
  }
  // The inputs of one matrix go together.
  std::map<uint32_t, std::vector<uint32_t>> inputs;
  for (const auto& [weight, values] : graph.weights) {
    for (const Use& reader : uses.readers(weight)) {
      const int input = op_traits(reader.step->op).multiplied_input;
      if (input < 0) continue;
      const auto matrix = weight_input(op_traits(reader.step->op));
      if (!matrix || reader.step->inputs[matrix->input] != weight) continue;
      inputs[weight].push_back(reader.step->inputs[static_cast<size_t>(input)]);
    }
  }
  std::vector<std::vector<uint32_t>> links;
  for (const auto& [weight, tensors] : inputs) links.push_back(tensors);
  // An input and all its matrices: through what else these read.
  for (const uint32_t x : std::set<uint32_t>(chosen)) {
    for (const Use& reader : uses.readers(x)) {
      const auto matrix = weight_input(op_traits(reader.step->op));
      const uint32_t weight = matrix ? reader.step->inputs[matrix->input] : 0;
      if (!matrix || !can_be_turned(graph.tensor(weight), options) || !inputs.contains(weight) ||
          uses.readers(weight).size() != inputs.at(weight).size() + lookups(uses, weight).size()) {
        chosen.erase(x);
      }
    }
  }
  keep_whole(chosen, links);
  for (const uint32_t x : chosen) {
    if (graph.tensor(x).hadamard != 0) continue;
    // All that share matrices have blocks of one size.
    std::set<uint32_t> tensors = {x}, matrices;
    for (bool grown = true; grown;) {
      const size_t before = tensors.size() + matrices.size();
      for (const auto& [weight, read] : inputs) {
        const auto is_one = [&](uint32_t tensor) { return tensors.contains(tensor); };
        if (std::none_of(read.begin(), read.end(), is_one)) continue;
        matrices.insert(weight);
        tensors.insert(read.begin(), read.end());
      }
      grown = tensors.size() + matrices.size() != before;
    }
    const size_t block = best_block(graph, seen, matrices);
    for (const uint32_t tensor : tensors)
      graph.tensor(tensor).hadamard = static_cast<uint32_t>(block);
    for (const uint32_t weight : matrices) {
      graph.weights.at(weight).turn_rows(static_cast<uint32_t>(block));
      for (schema::StepT* step : lookups(uses, weight))
        op_traits(step->op).turn_back(*step, static_cast<uint32_t>(block));
    }
  }
  return chosen.size();
}

size_t group_rows(Graph& graph) {
  const Uses uses(graph);
  size_t count = 0;
  for (uint32_t i = 0; i < graph.model.tensors.size(); ++i) {
    schema::TensorT& x = graph.tensor(i);
    const bool enters_groups =
        !uses.readers(i).empty() &&
        std::all_of(uses.readers(i).begin(), uses.readers(i).end(), [&](const Use& reader) {
          const OpTraits& traits = op_traits(reader.step->op);
          const auto weight = weight_input(traits);
          return weight && traits.multiplied_input == static_cast<int>(reader.place) &&
                 is_in_groups(graph.tensor(reader.step->inputs[weight->input]).type);
        });
    if (!enters_groups || x.type != DataType::I8 || x.kind != TensorKind::Activation ||
        x.hadamard != 0 || x.width % kI4BlockColumns != 0 || uses.is_seen(i)) {
      continue;
    }
    x.scale_groups = x.width / static_cast<uint32_t>(kI4BlockColumns);
    ++count;
  }
  return count;
}

size_t turn_keys(Graph& graph) {
  const Uses uses(graph);
  std::set<uint32_t> chosen;
  std::vector<std::vector<uint32_t>> links;
  std::vector<schema::StepT*> multiplying;
  const auto products_of = [](const schema::StepT& step) {
    return op_traits(step.op).head_products(step);
  };
  const auto block_of = [&](const schema::StepT& step, const HeadProducts& products) {
    return largest_hadamard_block(graph.tensor(step.inputs[products.inputs[0]]).width /
                                  products.heads);
  };
  for (const auto& entry : graph.model.entry_points) {
    for (const auto& step : entry->steps) {
      if (op_traits(step->op).head_products != nullptr) {
        const HeadProducts products = products_of(*step);
        std::vector<uint32_t> link;
        for (const size_t input : products.inputs) link.push_back(step->inputs[input]);
        const bool i8 = graph.tensor(link.at(1)).type == DataType::I8;
        if (i8 && products.alone && block_of(*step, products) != 0) {
          chosen.insert(link.begin(), link.end());
        }
        multiplying.push_back(step.get());
        links.push_back(std::move(link));
      } else if (op_traits(step->op).stores_rows) {
        for (size_t i = 0; i < step->outputs.size(); ++i) {
          links.push_back({step->inputs[i], step->outputs[i]});
        }
      }
    }
  }
  // Keys of this run may be read only behind their push.
  for (const uint32_t state : std::set<uint32_t>(chosen)) {
    for (const Use& writer : uses.writers(state)) {
      if (stores(writer)) chosen.insert(writer.step->inputs[writer.place]);
    }
  }
  std::erase_if(chosen, [&](uint32_t tensor) { return !is_turnable_head(graph, uses, tensor); });
  keep_whole(chosen, links);
  size_t count = 0;
  for (schema::StepT* step : multiplying) {
    const HeadProducts products = products_of(*step);
    if (!chosen.contains(step->inputs[products.inputs[0]])) continue;
    const auto block = static_cast<uint32_t>(block_of(*step, products));
    op_traits(step->op).divide_products(*step, static_cast<float>(block));
    for (const size_t input : products.inputs) {
      const uint32_t rows = step->inputs[input];
      graph.tensor(rows).hadamard = block;
      for (const Use& writer : uses.writers(rows)) {
        if (stores(writer)) graph.tensor(writer.step->inputs[writer.place]).hadamard = block;
      }
    }
    ++count;
  }
  return count;
}

std::string transform_text(const Transform& transform) {
  return in_words(
      {transform.unbias_keys ? "keys without biases" : "", transform.scale ? "channels scaled" : "",
       transform.turn ? "rows turned" : "", transform.turn_keys ? "keys turned" : "",
       transform.keep_groups ? "groups kept" : "", transform.group_rows ? "rows in groups" : "",
       transform.fit ? "weights fitted" : "", transform == Transform{} ? "as they are" : ""});
}

}  // namespace oxbow::convert
