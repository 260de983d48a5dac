#include "host/layers.h"

#include <cstdlib>
#include <string>

namespace oxbow {
namespace {

/// The number behind "layer" or "layers." in a name, or -1.
int layer_in(const std::string& name) {
  for (const std::string word : {"layers.", "layer"}) {
    const size_t place = name.find(word);
    if (place == std::string::npos) continue;
    const size_t digits = place + word.size();
    if (digits < name.size() && name[digits] >= '0' && name[digits] <= '9') {
      return static_cast<int>(std::strtol(name.substr(digits, 6).c_str(), nullptr, 10));
    }
  }
  return -1;
}

}  // namespace

std::vector<int> step_layers(const schema::ModelT& model, const schema::EntryPointT& entry) {
  const auto& steps = entry.steps;
  std::vector<int> layers(steps.size(), -1);
  size_t last_layered = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const auto* list : {&steps[i]->outputs, &steps[i]->inputs}) {
      for (const uint32_t tensor : *list) {
        // Weights name the layer that uses them; a hidden state's own name may belong to the next.
        if (layers[i] < 0) layers[i] = layer_in(model.tensors[tensor]->name);
      }
    }
    if (layers[i] >= 0) last_layered = i;
  }
  for (size_t i = 1; i < last_layered; ++i) {
    if (layers[i] < 0) layers[i] = layers[i - 1];
  }
  return layers;
}

}  // namespace oxbow
