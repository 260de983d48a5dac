// A decoder of labml.ai's switch layers (labml_nn/transformers/switch, Fedus 2021): causal attention without positions, and
// a feed-forward half that is one of several experts, chosen by each token.

#include "converter/blocks/causal_decoder.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

class SwitchTransformer {
 public:
  SwitchTransformer(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph)
      : checkpoint_(checkpoint), graph_(graph) {
    shape_.vocabulary = read_labml_vocabulary(checkpoint);
    shape_.layers = checkpoint.size("n_layers", 1, kMaxLayers);
    width_ = checkpoint.size("d_model", 1, kMaxSize);
    heads_ = read_heads(checkpoint, "d_model", width_, "heads");
    inner_ = checkpoint.size("d_ff", 1, kMaxSize);
    experts_ = checkpoint.size("n_experts", 1, 4096);
    scales_ = checkpoint.flag("is_scale_prob", true);
    if (checkpoint.flag("drop_tokens", false)) {
      throw InputError(
          "config.json: drop_tokens is true, expected false: which tokens are dropped is random in "
          "the original");
    }
    checkpoint.ignore_keys({"capacity_factor"});
    epsilon_ = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-12, 1, 1e-5));
    ignore_common_keys(checkpoint);
    CausalDecoder decoder(checkpoint, options, shape_, heads_, graph);
    build(decoder);
  }

 private:
  void build(CausalDecoder& decoder) {
    GraphBuilder& builder = decoder.builder();
    Parts& parts = decoder.parts();
    uint32_t x = builder.embedding("embedded", builder.tokens(),
                                   parts.matrix("src_embed.weight", shape_.vocabulary, width_));
    std::vector<uint32_t> chosen;
    for (uint32_t i = 0; i < shape_.layers; ++i) {
      const std::string name = "layer" + std::to_string(i);
      const std::string prefix = "transformer.layers." + std::to_string(i) + ".";
      decoder.layer_input(i, x);
      const uint32_t z =
          parts.layer_norm(name + ".normed", x, prefix + "norm_self_attn", width_, epsilon_);
      const auto project = [&](const char* to, const char* which) {
        return parts.linear(name + to, z, prefix + "attn." + which + ".linear", width_, width_);
      };
      const uint32_t q = project(".q", "query"), k = project(".k", "key"),
                     v = project(".v", "value");
      const uint32_t attended = decoder.attend(i, q, k, v, attention_scale(heads_.width));
      x = builder.add(name + ".attended", x,
                      parts.linear(name + ".o", attended, prefix + "attn.output", width_, width_));
      const uint32_t y =
          parts.layer_norm(name + ".ff.normed", x, prefix + "norm_ff", width_, epsilon_);
      x = builder.add(name + ".out", x,
                      experts(builder, parts, name + ".ff", prefix + "feed_forward.", y, &chosen));
    }
    const uint32_t last = parts.layer_norm("last", builder.take_rows("tail", x), "transformer.norm",
                                           width_, epsilon_);
    decoder.logits(last, parts.matrix("generator.weight", shape_.vocabulary, width_),
                   parts.vector("generator.bias", shape_.vocabulary));
    for (uint32_t i = 0; i < shape_.layers; ++i) {
      const std::string layer = ".layer" + std::to_string(i);
      builder.output("route" + layer,
                     builder.slice_columns("chosen" + layer + ".expert", chosen[i], 0, 1));
      builder.output("route_prob_max" + layer,
                     builder.slice_columns("chosen" + layer + ".p", chosen[i], 1, 1));
    }
    decoder.describe({{"d_ff", inner_}, {"d_model", width_}, {"experts", experts_}});
    graph_.model.metadata->time_major = true;
  }

  /// One layer of all experts: their matrices one behind the other, with rows of zeros up to a multiple of 8.
  uint32_t expert_linear(GraphBuilder& builder, const std::string& name, const std::string& prefix,
                         const std::string& layer, uint32_t x, uint32_t routes, uint32_t in,
                         uint32_t out) {
    const uint32_t pitch = (out + 7) / 8 * 8;
    std::vector<float> weights, biases;
    for (uint32_t e = 0; e < experts_; ++e) {
      const std::string expert = prefix + "experts." + std::to_string(e) + "." + layer;
      const std::vector<float> weight = checkpoint_.matrix(expert + ".weight", out, in);
      const std::vector<float> bias = checkpoint_.vector(expert + ".bias", out);
      weights.insert(weights.end(), weight.begin(), weight.end());
      weights.resize(size_t{e + 1} * pitch * in);
      biases.insert(biases.end(), bias.begin(), bias.end());
    }
    const std::string all = prefix + "experts." + layer;
    return builder.routed_linear(
        name, x, routes, builder.weight(all + ".weight", experts_ * pitch, in, std::move(weights)),
        builder.weight(all + ".bias", experts_, out, std::move(biases)), experts_, out);
  }

  uint32_t experts(GraphBuilder& builder, Parts& parts, const std::string& name,
                   const std::string& prefix, uint32_t x, std::vector<uint32_t>* chosen) {
    const GraphBuilder::Route route =
        builder.route(name, parts.linear(name + ".switch", x, prefix + "switch", width_, experts_));
    chosen->push_back(route.chosen);
    const uint32_t wide = builder.activate(
        name + ".active",
        expert_linear(builder, name + ".wide", prefix, "layer1", x, route.routes, width_, inner_),
        schema::Activation::Relu);
    const uint32_t y = expert_linear(builder, name + ".narrow", prefix, "layer2", wide,
                                     route.routes, inner_, width_);
    if (!scales_) return y;
    return builder.multiply(name + ".scaled", y,
                            builder.slice_columns(name + ".p", route.chosen, 1, 1));
  }

  const Checkpoint& checkpoint_;
  Graph& graph_;
  CausalShape shape_;
  AttentionHeads heads_;
  uint32_t width_ = 0, inner_ = 0, experts_ = 0;
  bool scales_ = true;
  float epsilon_ = 0;
};

}  // namespace

void import_labml_switch_transformer(const Checkpoint& checkpoint, const ImportOptions& options,
                                     Graph& graph) {
  SwitchTransformer(checkpoint, options, graph);
}

}  // namespace oxbow::convert
