#pragma once

// What decoders of microsoft/torchscale have in common.

#include <string>

#include "converter/formats/checkpoint.h"
#include "converter/graph.h"

namespace oxbow::convert {

/// Refuses what changes results and no importer does; passes over what changes none.
void read_torchscale_keys(const Checkpoint& checkpoint);

/// The stream that layers add to.
struct TorchscaleStream {
  bool embedding_norm, tied;
  /// Norms before the layers and one behind the last; else one behind each.
  bool pre_norm;
  /// Norms inside of layers.
  bool inner_norms;
  float embedding_scale;
  /// Of what a layer's result is added to, by DeepNorm.
  float residual_scale;
};
TorchscaleStream read_torchscale_stream(const Checkpoint& checkpoint, uint32_t width,
                                        uint32_t layers);

/// f(norm(x)) + x, or norm(f(x) + x), with x scaled. `norm` takes the name of its result and its input.
template <typename Norm, typename Function>
uint32_t torchscale_residual(GraphBuilder& builder, const TorchscaleStream& stream,
                             const std::string& name, uint32_t x, const Norm& norm,
                             const Function& function) {
  const std::string normed = name + ".normed";
  const uint32_t y = function(stream.pre_norm ? norm(normed, x) : x);
  uint32_t kept = x;
  if (stream.residual_scale != 1.0f) {
    kept = builder.multiply(name + ".scaled", x,
                            builder.weight(name + ".alpha", 1, 1, {stream.residual_scale}));
  }
  const uint32_t sum = builder.add(name + ".sum", kept, y);
  return stream.pre_norm ? sum : norm(normed, sum);
}

}  // namespace oxbow::convert
