#include "converter/blocks/recurrent.h"

#include <cmath>

namespace oxbow::convert {

uint32_t begin_stream(const Checkpoint& checkpoint, const ImportOptions& options,
                      uint32_t vocabulary, Graph& graph, GraphBuilder& builder) {
  GraphBuilder::Entry entry;
  entry.vocabulary = vocabulary;
  entry.max_segment = read_segment(checkpoint, options);
  entry.any_pieces = true;
  builder.begin_entry(entry);
  graph.model.task = schema::Task::Generate;
  return entry.max_segment;
}

uint32_t head_matrix(const Checkpoint& checkpoint, Parts& parts, bool tied, uint32_t words,
                     const std::string& name, uint32_t vocabulary, uint32_t width) {
  if (!tied) return parts.matrix(name, vocabulary, width);
  checkpoint.ignore_tensor(name);
  return words;
}

uint32_t gated_feed_forward(GraphBuilder& builder, Parts& parts, const std::string& name,
                            uint32_t x, const GatedFeedForward& layer) {
  const uint32_t width = layer.width, inner = layer.inner;
  const uint32_t gate = builder.activate(
      name + ".gate", parts.linear(name + ".gate.in", x, layer.gate, width, inner, layer.bias),
      layer.activation);
  const uint32_t up = parts.linear(name + ".up", x, layer.up, width, inner, layer.bias);
  return parts.linear(name + ".out", builder.multiply(name + ".gated", gate, up), layer.down, inner,
                      width, layer.bias);
}

uint32_t scaled_matrix(const Checkpoint& checkpoint, GraphBuilder& builder,
                       const std::string& prefix, uint32_t in, uint32_t out, double factor) {
  std::vector<float> values = checkpoint.matrix(prefix + ".weight", out, in);
  for (float& value : values) value = static_cast<float>(value * factor);
  return builder.weight(prefix + ".weight", out, in, std::move(values));
}

uint32_t unit_heads(GraphBuilder& builder, const std::string& name, uint32_t x, uint32_t heads,
                    uint32_t head_width, double epsilon, double factor) {
  // x / sqrt(n mean + e) is x / sqrt(mean + e / n), divided by sqrt(n).
  const auto scale = static_cast<float>(factor / std::sqrt(static_cast<double>(head_width)));
  const uint32_t weight =
      row_weight(builder, name + ".scale", std::vector<float>(head_width, scale));
  return builder.rms_norm(name, x, weight, static_cast<float>(epsilon / head_width), heads);
}

uint32_t row_weight(GraphBuilder& builder, const std::string& name, std::vector<float> values) {
  const auto width = static_cast<uint32_t>(values.size());
  return builder.weight(name, 1, width, std::move(values));
}

std::vector<float> linspace_frequencies(double base, uint32_t pairs) {
  std::vector<float> out;
  for (uint32_t i = 0; i < pairs; ++i) {
    out.push_back(static_cast<float>(
        std::pow(base, pairs == 1 ? 0.0 : -static_cast<double>(i) / (pairs - 1))));
  }
  return out;
}

}  // namespace oxbow::convert
