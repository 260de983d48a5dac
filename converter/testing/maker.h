#pragma once

// Graphs made by hand for tests of passes.

#include <cstdint>
#include <string>
#include <vector>

#include "converter/graph.h"

namespace oxbow::testing {

/// A builder with weights made on demand.
struct Maker {
  convert::Graph graph;
  convert::GraphBuilder builder{graph};

  Maker() {
    convert::GraphBuilder::Entry entry;
    entry.vocabulary = 16;
    entry.max_segment = 8;
    builder.begin_entry(entry);
  }

  uint32_t matrix(uint32_t rows, uint32_t width) {
    return builder.weight("w" + std::to_string(graph.model.tensors.size()), rows, width,
                          std::vector<float>(size_t{rows} * width, 0.5f));
  }
  uint32_t embed(uint32_t width) {
    return builder.embedding("x", builder.tokens(), matrix(16, width));
  }
  uint32_t norm(uint32_t x, uint32_t width) {
    return builder.layer_norm("norm", x, matrix(1, width), matrix(1, width), 1e-5f);
  }
  void finish(uint32_t x) {
    const uint32_t width = graph.tensor(x).width;
    builder.logits(builder.take_rows("tail", x), matrix(16, width), convert::GraphBuilder::kNone);
  }
  std::vector<schema::OpCode> ops() const {
    std::vector<schema::OpCode> out;
    for (const auto& step : graph.main_entry().steps) out.push_back(step->op);
    return out;
  }
  const schema::TensorT* find(const std::string& name) const {
    for (const auto& tensor : graph.model.tensors) {
      if (tensor->name == name) return tensor.get();
    }
    return nullptr;
  }
};

}  // namespace oxbow::testing
