#pragma once

// The data region of a small graph, in memory.

#include <cstring>
#include <vector>

#include "converter/passes/passes.h"

namespace oxbow::testing {

struct PackedWeights {
  std::vector<std::byte> data;
  convert::WeightErrors errors;
};

inline PackedWeights pack_all(convert::Graph& graph, const convert::MatrixInputs& inputs = {}) {
  PackedWeights packed;
  packed.data.resize(convert::place_weights(graph));
  const auto write = [&](uint64_t offset, std::span<const std::byte> bytes) {
    std::memcpy(packed.data.data() + offset, bytes.data(), bytes.size());
  };
  packed.errors = convert::pack(graph, write, inputs);
  return packed;
}

}  // namespace oxbow::testing
