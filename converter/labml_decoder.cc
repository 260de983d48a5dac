#include "converter/labml_decoder.h"

namespace oxbow::convert {
namespace {

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const LabmlDecoder& config,
          Graph& graph)
      : config_(config), graph_(graph), decoder_(checkpoint, options, config.shape, graph) {}

  void build() {
    GraphBuilder& builder = decoder_.builder();
    const uint32_t vocabulary = config_.shape.vocabulary, width = config_.width;
    uint32_t x = builder.embedding("embedded", builder.tokens(),
                                   parts().matrix("src_embed.weight", vocabulary, width));
    for (uint32_t i = 0; i < config_.shape.layers; ++i) {
      decoder_.layer_input(i, x);
      x = layer(i, x);
    }
    const uint32_t last = norm("final_norm", builder.take_rows("tail", x), "encoder.norm");
    decoder_.logits(last, parts().matrix("generator.projection.weight", vocabulary, width),
                    parts().vector("generator.projection.bias", vocabulary));
    decoder_.describe({{"d_ff", config_.inner}, {"d_model", width}});
    graph_.model.metadata->time_major = true;
  }

 private:
  Parts& parts() { return decoder_.parts(); }
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    return parts().layer_norm(name, x, of, config_.width, config_.epsilon);
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string of = "encoder.layers." + std::to_string(index) + ".";
    const uint32_t width = config_.width;
    GraphBuilder& builder = decoder_.builder();

    const uint32_t z = norm(name + ".normed", x, of + "norm_self_attn");
    const auto project = [&](const char* suffix, const char* which) {
      return parts().linear(name + suffix, z, of + "self_attn." + which + ".linear", width, width);
    };
    const uint32_t q = project(".q", "query"), k = project(".k", "key"), v = project(".v", "value");
    const uint32_t attended =
        decoder_.attend(index, q, k, v, attention_scale(config_.shape.head_width));
    const uint32_t y = builder.add(
        name + ".attended", x,
        parts().linear(name + ".attention.out", attended, of + "self_attn.output", width, width));
    const uint32_t normed = norm(name + ".ff.normed", y, of + "norm_ff");
    return builder.add(name + ".out", y, feed_forward(name + ".ff", normed, of + "feed_forward."));
  }

  uint32_t feed_forward(const std::string& name, uint32_t z, const std::string& of) {
    GraphBuilder& builder = decoder_.builder();
    const uint32_t width = config_.width, inner = config_.inner;
    uint32_t wide = builder.activate(
        name + ".active",
        parts().linear(name + ".wide", z, of + "layer1", width, inner, config_.bias1),
        config_.activation);
    if (config_.gated) {
      wide = builder.multiply(
          name + ".gated", wide,
          parts().linear(name + ".gate", z, of + "linear_v", width, inner, config_.bias_gate));
    }
    return parts().linear(name + ".out", wide, of + "layer2", inner, width, config_.bias2);
  }

  const LabmlDecoder& config_;
  Graph& graph_;
  CausalDecoder decoder_;
};

}  // namespace

LabmlDecoder read_labml_decoder(const Checkpoint& checkpoint) {
  LabmlDecoder config;
  CausalShape& shape = config.shape;
  shape.vocabulary = read_labml_vocabulary(checkpoint);
  config.width = checkpoint.size("d_model", 1, kMaxSize);
  shape.heads = shape.kv_heads = checkpoint.size("heads", 1, config.width);
  require_multiple("d_model", config.width, "heads", shape.heads);
  shape.head_width = config.width / shape.heads;
  shape.layers = checkpoint.size("n_layers", 1, kMaxLayers);
  config.inner = checkpoint.size("d_ff", 1, kMaxSize);
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-12, 1, 1e-5));
  config.activation = read_activation(checkpoint, "activation", "relu");
  config.gated = checkpoint.flag("is_gated", false);
  config.bias1 = checkpoint.flag("bias1", true);
  config.bias2 = checkpoint.flag("bias2", true);
  config.bias_gate = checkpoint.flag("bias_gate", true);
  checkpoint.ignore_keys({"seq_len"});
  ignore_common_keys(checkpoint);
  return config;
}

void build_labml_decoder(const Checkpoint& checkpoint, const ImportOptions& options,
                         const LabmlDecoder& config, Graph& graph) {
  Builder(checkpoint, options, config, graph).build();
}

}  // namespace oxbow::convert
