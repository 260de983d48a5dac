#include "host/lifetimes.h"

#include <algorithm>

namespace oxbow {

bool is_planned(const schema::TensorT& tensor) {
  return tensor.kind == schema::TensorKind::Activation || tensor.kind == schema::TensorKind::Input;
}

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
    for (const uint32_t tensor : entry->outputs) touch(tensor, end);
    first = end + 1;
  }
  return lives;
}

}  // namespace oxbow
