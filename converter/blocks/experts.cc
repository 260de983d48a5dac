#include "converter/blocks/experts.h"

#include <utility>
#include <vector>

namespace oxbow::convert {
namespace {

/// One layer of all experts: their matrices one behind the other, with rows of zeros up to a multiple of 8.
uint32_t expert_linear(const Checkpoint& checkpoint, const Experts& experts,
                       const std::string& name, const std::string& prefix, const std::string& layer,
                       uint32_t x, uint32_t routes, uint32_t in, uint32_t out,
                       GraphBuilder& builder) {
  const uint32_t pitch = (out + 7) / 8 * 8;
  std::vector<float> weights, biases;
  weights.reserve(size_t{experts.count} * pitch * in);
  for (uint32_t e = 0; e < experts.count; ++e) {
    const std::string expert = prefix + experts.expert + std::to_string(e) + layer;
    const std::vector<float> weight = checkpoint.matrix(expert + ".weight", out, in);
    weights.insert(weights.end(), weight.begin(), weight.end());
    weights.resize(size_t{e + 1} * pitch * in);
    if (!experts.bias) continue;
    const std::vector<float> bias = checkpoint.vector(expert + ".bias", out);
    biases.insert(biases.end(), bias.begin(), bias.end());
  }
  const std::string all = prefix + experts.expert + "*" + layer;
  const uint32_t weight =
      builder.weight(all + ".weight", experts.count * pitch, in, std::move(weights));
  const uint32_t bias = experts.bias
                            ? builder.weight(all + ".bias", experts.count, out, std::move(biases))
                            : GraphBuilder::kNone;
  return builder.routed_linear(name, x, routes, weight, bias, experts.count, out);
}

}  // namespace

ExpertsOutput add_experts(const Checkpoint& checkpoint, const Experts& experts,
                          const std::string& name, const std::string& prefix, uint32_t x,
                          GraphBuilder& builder, Parts& parts) {
  const uint32_t scores = parts.linear(name + ".switch", x, prefix + experts.router, experts.width,
                                       experts.count, experts.router_bias);
  const GraphBuilder::Route route = builder.route(name, scores, experts.capacity);
  const auto linear = [&](const char* to, const std::string& layer, uint32_t from, uint32_t in,
                          uint32_t out) {
    return expert_linear(checkpoint, experts, name + to, prefix, layer, from, route.routes, in, out,
                         builder);
  };
  const uint32_t wide = linear(".wide", experts.up, x, experts.width, experts.inner);
  const uint32_t active = builder.activate(name + ".active", wide, experts.activation);
  uint32_t y = linear(".narrow", experts.down, active, experts.inner, experts.width);
  if (experts.scaled) {
    y = builder.multiply(name + ".scaled", y,
                         builder.slice_columns(name + ".p", route.chosen, 1, 1));
  }
  return {y, route.chosen};
}

}  // namespace oxbow::convert
