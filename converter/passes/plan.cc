// Where activations and states live.
//
// An activation needs its bytes from the step that writes it to the last step that reads it. Two
// whose lifetimes do not meet may share bytes. Greedy by size, as in TensorFlow Lite:
//
//   1. Sort the activations by bytes, the largest first; equals by index, so that the result is
//      the same every time.
//   2. Take each in turn. Look at those already placed that live at the same time, in the order of
//      their offsets, and put it into the lowest gap between them that is large enough, or behind
//      the last.
//
// Large tensors get the low offsets and small ones fill the holes. A step's inputs and outputs live
// at the same time, so no step works in place. Inputs, further outputs and kept activations live until the end.
// States are never shared: they lie one after another.

#include <algorithm>

#include "converter/passes/passes.h"
#include "host/errors.h"
#include "host/lifetimes.h"
#include "runtime/base/tensor.h"
#include "runtime/model/state_kinds.h"

namespace oxbow::convert {
namespace {

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

void plan(Graph& graph) {
  schema::ModelT& model = graph.model;
  for (auto& tensor : model.tensors) tensor->bytes = bytes_of(*tensor);
  model.plan = std::make_unique<schema::MemoryPlanT>();
  model.plan->activations = place_activations(model);
  // What the beams of a search share comes first.
  for (const bool shared : {true, false}) {
    for (auto& tensor : model.tensors) {
      if (tensor->kind != schema::TensorKind::State) continue;
      if (is_shared_state(model, *tensor) != shared) continue;
      tensor->offset = model.plan->states;
      model.plan->states += aligned(tensor->bytes);
    }
    if (shared) model.plan->shared_states = model.plan->states;
  }
}

}  // namespace oxbow::convert
