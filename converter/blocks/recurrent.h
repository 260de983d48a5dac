#pragma once

// What decoders are made of whose past is a state of fixed size: their entry point, which takes a stream in
// any pieces and never ends, and the layers that several of them share.

#include <cstdint>
#include <string>
#include <vector>

#include "converter/blocks/parts.h"
#include "converter/formats/checkpoint.h"
#include "converter/graph.h"

namespace oxbow::convert {

/// An endless stream of ids below `vocabulary`. Returns the most tokens of one run.
uint32_t begin_stream(const Checkpoint& checkpoint, const ImportOptions& options,
                      uint32_t vocabulary, Graph& graph, GraphBuilder& builder);

/// The matrix of the head: `words` if they are tied, which passes over a stored copy, or else the tensor `name`.
uint32_t head_matrix(const Checkpoint& checkpoint, Parts& parts, bool tied, uint32_t words,
                     const std::string& name, uint32_t vocabulary, uint32_t width);

/// down(activation(gate x) * up x), by the names of the matrices.
struct GatedFeedForward {
  std::string gate, up, down;
  uint32_t width = 0, inner = 0;
  schema::Activation activation = schema::Activation::Silu;
  bool bias = false;
};
uint32_t gated_feed_forward(GraphBuilder& builder, Parts& parts, const std::string& name,
                            uint32_t x, const GatedFeedForward& layer);

/// The matrix of nn.Linear times `factor`.
uint32_t scaled_matrix(const Checkpoint& checkpoint, GraphBuilder& builder,
                       const std::string& prefix, uint32_t in, uint32_t out, double factor);

/// Each head of x divided by the root of the sum of its squares and epsilon, times `factor`.
uint32_t unit_heads(GraphBuilder& builder, const std::string& name, uint32_t x, uint32_t heads,
                    uint32_t head_width, double epsilon, double factor);

/// Values as a weight of one row.
uint32_t row_weight(GraphBuilder& builder, const std::string& name, std::vector<float> values);

/// base^(-i / (pairs - 1)): both ends are included, unlike in rope_frequencies().
std::vector<float> linspace_frequencies(double base, uint32_t pairs);

}  // namespace oxbow::convert
