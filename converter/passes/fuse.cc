// Folds what follows a linear step into it. The step computes activation(x W + b) + residual, so an
// activation may follow directly, and an addition may follow that, never the other way round.

#include <algorithm>
#include <optional>

#include "converter/passes/passes.h"

namespace oxbow::convert {
namespace {

struct Uses {
  std::vector<uint32_t> count;
  /// Step that writes the tensor; nothing for inputs, weights and states.
  std::vector<std::optional<size_t>> producer;
};

Uses find_uses(const Graph& graph, const schema::EntryPointT& entry) {
  Uses uses;
  uses.count.resize(graph.model.tensors.size());
  uses.producer.resize(graph.model.tensors.size());
  for (size_t i = 0; i < entry.steps.size(); ++i) {
    const schema::StepT& step = *entry.steps[i];
    for (const uint32_t input : step.inputs) ++uses.count[input];
    for (const uint32_t output : step.outputs) {
      if (graph.tensor(output).kind != schema::TensorKind::State) uses.producer[output] = i;
    }
  }
  for (const uint32_t kept : entry.kept) ++uses.count[kept];
  return uses;
}

/// The linear step that makes `tensor` for nobody but the step that asks, when it can still take
/// more.
schema::StepT* fusible(Graph& graph, schema::EntryPointT& entry, const Uses& uses,
                       uint32_t tensor) {
  if (uses.count[tensor] != 1 || !uses.producer[tensor]) return nullptr;
  if (graph.tensor(tensor).kind != schema::TensorKind::Activation) return nullptr;
  schema::StepT* step = entry.steps[*uses.producer[tensor]].get();
  if (step->op != schema::OpCode::Linear || step->options.AsLinearOptions()->has_residual) {
    return nullptr;
  }
  return step;
}

bool fuse_activate(Graph& graph, schema::EntryPointT& entry, const Uses& uses,
                   const schema::StepT& step) {
  schema::StepT* linear = fusible(graph, entry, uses, step.inputs[0]);
  if (linear == nullptr) return false;
  schema::LinearOptionsT& options = *linear->options.AsLinearOptions();
  if (options.activation != schema::Activation::None) return false;
  options.activation = step.options.AsActivateOptions()->activation;
  options.limit = step.options.AsActivateOptions()->limit;
  linear->outputs = step.outputs;
  return true;
}

bool fuse_add(Graph& graph, schema::EntryPointT& entry, const Uses& uses,
              const schema::StepT& step) {
  // The second operand first: it is the newer one in x + f(x).
  for (const size_t side : {1, 0}) {
    const uint32_t sum = step.inputs[side], residual = step.inputs[1 - side];
    schema::StepT* linear = fusible(graph, entry, uses, sum);
    if (linear == nullptr || sum == residual) continue;
    const bool ready = !uses.producer[residual] || *uses.producer[residual] < *uses.producer[sum];
    const schema::TensorT &a = graph.tensor(sum), &b = graph.tensor(residual);
    if (!ready || a.width != b.width || a.rows_symbol != b.rows_symbol || a.rows != b.rows)
      continue;
    linear->options.AsLinearOptions()->has_residual = true;
    linear->inputs.push_back(residual);
    linear->outputs = step.outputs;
    return true;
  }
  return false;
}

}  // namespace

void fuse(Graph& graph) {
  for (auto& entry : graph.model.entry_points) {
    auto& steps = entry->steps;
    for (size_t i = 0; i < steps.size();) {
      const Uses uses = find_uses(graph, *entry);
      const schema::StepT& step = *steps[i];
      const bool fused =
          (step.op == schema::OpCode::Activate && fuse_activate(graph, *entry, uses, step)) ||
          (step.op == schema::OpCode::Add && fuse_add(graph, *entry, uses, step));
      if (fused) {
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }
}

}  // namespace oxbow::convert
