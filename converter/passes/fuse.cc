// Folds steps into the one before them where that one can compute both (OpTraits::absorb), as a linear step can an
// activation and the addition of a residual.

#include <algorithm>
#include <optional>

#include "converter/passes/passes.h"
#include "ops/traits.h"

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
  for (const uint32_t output : entry.outputs) ++uses.count[output];
  return uses;
}

/// Fused, a state would be read or written earlier than before, and others may change or read it between.
bool touches_state(const Graph& graph, const schema::StepT& step) {
  const auto is_state = [&](uint32_t tensor) {
    return graph.tensor(tensor).kind == schema::TensorKind::State;
  };
  return std::any_of(step.inputs.begin(), step.inputs.end(), is_state) ||
         std::any_of(step.outputs.begin(), step.outputs.end(), is_state);
}

/// Lets the step that makes one of the inputs of `step`, for nobody else, compute what `step` does.
bool absorb(Graph& graph, schema::EntryPointT& entry, const Uses& uses, const schema::StepT& step) {
  // The last input first: it is the newer one in x + f(x).
  for (size_t input = step.inputs.size(); input-- > 0;) {
    const uint32_t tensor = step.inputs[input];
    if (uses.count[tensor] != 1 || !uses.producer[tensor]) continue;
    if (graph.tensor(tensor).kind != schema::TensorKind::Activation) continue;
    const size_t place = *uses.producer[tensor];
    schema::StepT& producer = *entry.steps[place];
    const auto absorb_into = op_traits(producer.op).absorb;
    // What else the step reads must be there when its producer runs.
    const bool ready = std::all_of(step.inputs.begin(), step.inputs.end(), [&](uint32_t other) {
      return other == tensor || !uses.producer[other] || *uses.producer[other] < place;
    });
    if (absorb_into == nullptr || !ready || !absorb_into(graph.model, producer, step, input)) {
      continue;
    }
    producer.outputs = step.outputs;
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
      if (!touches_state(graph, *steps[i]) && absorb(graph, *entry, uses, *steps[i])) {
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }
}

}  // namespace oxbow::convert
