// Removes what has no influence on anything that can be seen: logits, kept activations and, through
// later runs, the states they are computed from. Then renumbers what is left.

#include <algorithm>

#include "converter/passes/passes.h"
#include "ops/traits.h"

namespace oxbow::convert {
namespace {

constexpr uint32_t kGone = UINT32_MAX;

/// Tensors that something seen depends on. Works until nothing changes, because a state that
/// becomes live is read in the next run and makes the steps that fill it live, wherever they stand.
std::vector<bool> find_live(const Graph& graph, bool keep_states) {
  std::vector<bool> live(graph.model.tensors.size());
  for (const auto& entry : graph.model.entry_points) {
    live[entry->tokens] = live[entry->logits] = true;
    for (const uint32_t input : entry->inputs) live[input] = true;
    for (const uint32_t kept : entry->kept) live[kept] = true;
    for (const uint32_t output : entry->outputs) live[output] = true;
  }
  for (size_t i = 0; keep_states && i < live.size(); ++i) {
    live[i] = live[i] || graph.model.tensors[i]->kind == schema::TensorKind::State;
  }
  std::vector<const schema::StepT*> steps;
  for (const auto& entry : graph.model.entry_points) {
    for (const auto& step : entry->steps) steps.push_back(step.get());
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
      const schema::StepT& step = **it;
      const bool paired = op_traits(step.op).signature->is_paired();
      const bool is_live = std::any_of(step.outputs.begin(), step.outputs.end(),
                                       [&](uint32_t output) { return live[output]; });
      // Steps write all their outputs or none, but for a push, which is several pushes side by side: rows
      // matter when their own state does.
      for (const uint32_t output : step.outputs) {
        if (is_live && !paired && !live[output]) live[output] = changed = true;
      }
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const bool needed = paired ? live[step.outputs[i]] : is_live;
        if (needed && !live[step.inputs[i]]) live[step.inputs[i]] = changed = true;
      }
    }
  }
  for (size_t i = 0; i < live.size(); ++i) {
    const int32_t initial = graph.model.tensors[i]->initial;
    if (live[i] && initial >= 0) live[static_cast<size_t>(initial)] = true;
  }
  return live;
}

void drop_dead_steps(schema::EntryPointT& entry, const std::vector<bool>& live) {
  auto& steps = entry.steps;
  for (auto& step : steps) {
    if (!op_traits(step->op).signature->is_paired()) continue;
    for (size_t i = step->outputs.size(); i-- > 0;) {
      if (live[step->outputs[i]]) continue;
      step->inputs.erase(step->inputs.begin() + static_cast<std::ptrdiff_t>(i));
      step->outputs.erase(step->outputs.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  std::erase_if(steps, [&](const auto& step) {
    return std::none_of(step->outputs.begin(), step->outputs.end(),
                        [&](uint32_t output) { return live[output]; });
  });
}

/// Moves the elements to keep to the front of `list`; returns the new index of each.
template <typename List>
std::vector<uint32_t> compact(List& list, const std::vector<bool>& keep) {
  std::vector<uint32_t> moved(list.size(), kGone);
  uint32_t next = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!keep[i]) continue;
    moved[i] = next;
    if (next != i) list[next] = std::move(list[i]);
    ++next;
  }
  list.resize(next);
  return moved;
}

void renumber_tensors(Graph& graph, const std::vector<bool>& live) {
  const std::vector<uint32_t> moved = compact(graph.model.tensors, live);
  for (auto& entry : graph.model.entry_points) {
    for (auto& step : entry->steps) {
      for (uint32_t& input : step->inputs) input = moved[input];
      for (uint32_t& output : step->outputs) output = moved[output];
    }
    entry->tokens = moved[entry->tokens];
    entry->logits = moved[entry->logits];
    for (uint32_t& input : entry->inputs) input = moved[input];
    for (uint32_t& kept : entry->kept) kept = moved[kept];
    for (uint32_t& output : entry->outputs) output = moved[output];
  }
  for (auto& tensor : graph.model.tensors) {
    if (tensor->initial >= 0) {
      tensor->initial = static_cast<int32_t>(moved[static_cast<size_t>(tensor->initial)]);
    }
  }
  std::map<uint32_t, Weight> weights;
  for (auto& [index, values] : graph.weights) {
    if (moved[index] != kGone) weights[moved[index]] = std::move(values);
  }
  graph.weights = std::move(weights);
  std::set<uint32_t> ternary;
  for (const uint32_t index : graph.ternary) {
    if (moved[index] != kGone) ternary.insert(moved[index]);
  }
  graph.ternary = std::move(ternary);
  std::erase_if(graph.debug_outputs,
                [&](const DebugOutput& output) { return moved[output.tensor] == kGone; });
  for (DebugOutput& output : graph.debug_outputs) output.tensor = moved[output.tensor];
}

void renumber_rings_and_symbols(Graph& graph) {
  std::vector<bool> rings(graph.model.rings.size()), symbols(graph.model.symbols.size());
  for (const auto& tensor : graph.model.tensors) {
    if (tensor->ring >= 0) rings[static_cast<size_t>(tensor->ring)] = true;
    if (tensor->rows_symbol >= 0) symbols[static_cast<size_t>(tensor->rows_symbol)] = true;
  }
  const std::vector<uint32_t> ring_moved = compact(graph.model.rings, rings);
  const std::vector<uint32_t> symbol_moved = compact(graph.model.symbols, symbols);
  for (auto& tensor : graph.model.tensors) {
    if (tensor->ring >= 0) {
      tensor->ring = static_cast<int32_t>(ring_moved[static_cast<size_t>(tensor->ring)]);
    }
    if (tensor->rows_symbol >= 0) {
      tensor->rows_symbol =
          static_cast<int32_t>(symbol_moved[static_cast<size_t>(tensor->rows_symbol)]);
    }
  }
}

}  // namespace

void remove_dead(Graph& graph, bool keep_states) {
  const std::vector<bool> live = find_live(graph, keep_states);
  for (auto& entry : graph.model.entry_points) drop_dead_steps(*entry, live);
  renumber_tensors(graph, live);
  renumber_rings_and_symbols(graph);
}

}  // namespace oxbow::convert
