#pragma once

// Who reads and writes the tensors of a graph, in all its entry points. Valid until steps are added or moved.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "converter/graph.h"

namespace oxbow::convert {

/// A step, and which of its inputs or outputs a tensor is.
struct Use {
  schema::StepT* step;
  size_t place;
};

class Uses {
 public:
  explicit Uses(Graph& graph) {
    readers_.resize(graph.model.tensors.size());
    writers_.resize(readers_.size());
    seen_.resize(readers_.size());
    for (const auto& entry : graph.model.entry_points) {
      for (const auto& step : entry->steps) {
        for (size_t i = 0; i < step->inputs.size(); ++i) {
          readers_[step->inputs[i]].push_back({step.get(), i});
        }
        for (size_t i = 0; i < step->outputs.size(); ++i) {
          writers_[step->outputs[i]].push_back({step.get(), i});
        }
      }
      for (const uint32_t kept : entry->kept) seen_[kept] = true;
      for (const uint32_t output : entry->outputs) seen_[output] = true;
      seen_[entry->logits] = true;
    }
  }

  const std::vector<Use>& readers(uint32_t tensor) const { return readers_[tensor]; }
  const std::vector<Use>& writers(uint32_t tensor) const { return writers_[tensor]; }
  /// The only step that writes it, if it is there.
  schema::StepT* producer(uint32_t tensor) const {
    return writers_[tensor].size() == 1 ? writers_[tensor][0].step : nullptr;
  }
  /// Callers can look at it.
  bool is_seen(uint32_t tensor) const { return seen_[tensor]; }

 private:
  std::vector<std::vector<Use>> readers_, writers_;
  std::vector<bool> seen_;
};

}  // namespace oxbow::convert
