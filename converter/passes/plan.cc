// Where activations and states live.
//
// An activation needs its bytes from the step that writes it to the last step that reads it. Two
// whose lifetimes do not meet may share bytes. Greedy by size, as in TensorFlow Lite:
//
//   1. Sort the activations by bytes, the largest first; equals by index, so that the result is the
//   same
//      every time.
//   2. Take each in turn. Look at those already placed that live at the same time, in the order of
//   their
//      offsets, and put it into the lowest gap between them that is large enough, or behind the
//      last.
//
// Large tensors get the low offsets and small ones fill the holes. A step's inputs and outputs live
// at the same time, so no step works in place. Inputs and kept activations live until the end.
// States are never shared: they lie one after another.

#include <algorithm>

#include "converter/errors.h"
#include "converter/passes/passes.h"
#include "runtime/base/tensor.h"

namespace oxbow::convert {
namespace {

bool is_planned(const schema::TensorT& tensor) {
  return tensor.kind == schema::TensorKind::Activation || tensor.kind == schema::TensorKind::Input;
}

uint64_t aligned(uint64_t bytes) { return round_up(bytes, kTensorAlignment); }

uint64_t bytes_of(const schema::TensorT& tensor) {
  uint64_t bytes = 0;
  if (!tensor_bytes(static_cast<DataType>(tensor.type), static_cast<Layout>(tensor.layout),
                    tensor.rows, tensor.width, tensor.scale_groups, &bytes)) {
    throw InputError("tensor " + tensor.name + " would be " + std::to_string(tensor.rows) + " x " +
                     std::to_string(tensor.width) +
                     ", which is too large; reduce --max-segment or the model");
  }
  return bytes;
}

uint64_t place_activations(schema::ModelT& model) {
  const std::vector<Lifetime> lives = lifetimes(model);
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < model.tensors.size(); ++i) {
    if (is_planned(*model.tensors[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return model.tensors[a]->bytes > model.tensors[b]->bytes;
  });

  uint64_t total = 0;
  std::vector<uint32_t> placed;  // By offset.
  for (const uint32_t index : order) {
    schema::TensorT& tensor = *model.tensors[index];
    uint64_t offset = 0;
    for (const uint32_t other : placed) {
      if (!lives[index].overlaps(lives[other])) continue;
      if (offset + tensor.bytes <= model.tensors[other]->offset) break;
      offset =
          std::max(offset, aligned(model.tensors[other]->offset + model.tensors[other]->bytes));
    }
    tensor.offset = offset;
    total = std::max(total, aligned(offset + tensor.bytes));
    const auto after = std::upper_bound(
        placed.begin(), placed.end(), offset,
        [&](uint64_t value, uint32_t other) { return value < model.tensors[other]->offset; });
    placed.insert(after, index);
  }
  return total;
}

}  // namespace

std::vector<Lifetime> lifetimes(const schema::ModelT& model) {
  std::vector<Lifetime> lives(model.tensors.size());
  std::vector<bool> seen(model.tensors.size());
  const auto touch = [&](uint32_t tensor, uint32_t step) {
    if (!is_planned(*model.tensors[tensor])) return;
    if (!seen[tensor]) lives[tensor] = {step, step};
    seen[tensor] = true;
    lives[tensor].first = std::min(lives[tensor].first, step);
    lives[tensor].last = std::max(lives[tensor].last, step);
  };
  uint32_t first = 0;  // Entry points run one after another and share all bytes.
  for (const auto& entry : model.entry_points) {
    const uint32_t steps = static_cast<uint32_t>(entry->steps.size());
    const uint32_t end = first + (steps == 0 ? 0 : steps - 1);
    for (uint32_t i = 0; i < steps; ++i) {
      for (const uint32_t tensor : entry->steps[i]->inputs) touch(tensor, first + i);
      for (const uint32_t tensor : entry->steps[i]->outputs) touch(tensor, first + i);
    }
    std::vector<uint32_t> inputs = entry->inputs;
    inputs.push_back(entry->tokens);
    for (const uint32_t tensor : inputs) {
      touch(tensor, first);
      touch(tensor, end);
    }
    for (const uint32_t tensor : entry->kept) touch(tensor, end);
    first = end + 1;
  }
  return lives;
}

void plan(Graph& graph) {
  schema::ModelT& model = graph.model;
  for (auto& tensor : model.tensors) tensor->bytes = bytes_of(*tensor);
  model.plan = std::make_unique<schema::MemoryPlanT>();
  model.plan->activations = place_activations(model);
  // What the beams of a search share comes first.
  for (const bool shared : {true, false}) {
    for (auto& tensor : model.tensors) {
      if (tensor->kind != schema::TensorKind::State) continue;
      const bool is_shared =
          tensor->ring >= 0 && model.rings[static_cast<size_t>(tensor->ring)]->shared;
      if (is_shared != shared) continue;
      tensor->offset = model.plan->states;
      model.plan->states += aligned(tensor->bytes);
    }
    if (shared) model.plan->shared_states = model.plan->states;
  }
}

}  // namespace oxbow::convert
