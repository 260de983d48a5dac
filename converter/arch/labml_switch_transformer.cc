// A decoder of labml.ai's switch layers (labml_nn/transformers/switch, Fedus 2021): causal attention without positions, and
// a feed-forward half that is one of several experts, chosen by each token.

#include "converter/blocks/causal_decoder.h"
#include "converter/blocks/experts.h"
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
    experts_.width = width_;
    experts_.inner = checkpoint.size("d_ff", 1, kMaxSize);
    experts_.count = checkpoint.size("n_experts", 1, 4096);
    experts_.scaled = checkpoint.flag("is_scale_prob", true);
    experts_.router = "switch";
    experts_.expert = "experts.";
    experts_.up = ".layer1";
    experts_.down = ".layer2";
    if (checkpoint.flag("drop_tokens", false)) {
      checkpoint.refuse(
          "drop_tokens is true, expected false: which tokens are dropped is random in "
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
      const ExpertsOutput ff = add_experts(checkpoint_, experts_, name + ".ff",
                                           prefix + "feed_forward.", y, builder, parts);
      chosen.push_back(ff.chosen);
      x = builder.add(name + ".out", x, ff.y);
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
    decoder.describe({{"d_ff", experts_.inner}, {"d_model", width_}, {"experts", experts_.count}});
    graph_.model.metadata->time_major = true;
  }

  const Checkpoint& checkpoint_;
  Graph& graph_;
  CausalShape shape_;
  AttentionHeads heads_;
  Experts experts_;
  uint32_t width_ = 0;
  float epsilon_ = 0;
};

}  // namespace

void import_labml_switch_transformer(const Checkpoint& checkpoint, const ImportOptions& options,
                                     Graph& graph) {
  SwitchTransformer(checkpoint, options, graph);
}

}  // namespace oxbow::convert
