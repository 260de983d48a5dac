// Fast weights as labml.ai wrote them (labml_nn/transformers/fast_weights; Schlag et al. 2021): linear attention
// whose matrix is corrected by the delta rule. The attention reads the residual stream without a norm; the norm
// that the layers have for it is used by nobody.

#include "converter/blocks/labml_stack.h"
#include "converter/blocks/recurrent.h"

namespace oxbow::convert {
namespace {

struct FastWeights {
  LabmlStackShape shape;
  uint32_t heads = 0;
  schema::FeatureMapOptionsT map;
};

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const FastWeights& config,
          Graph& graph)
      : checkpoint_(checkpoint), config_(config), builder_(graph), parts_(checkpoint, builder_) {
    max_segment_ = begin_stream(checkpoint, options, config.shape.vocabulary, graph, builder_);
  }

  uint32_t max_segment() const { return max_segment_; }

  void build() {
    const uint32_t vocabulary = config_.shape.vocabulary, width = config_.shape.width;
    uint32_t x = builder_.embedding("hidden_states.0", builder_.tokens(),
                                    parts_.matrix("src_embed.weight", vocabulary, width));
    builder_.debug_output(x);
    for (uint32_t i = 0; i < config_.shape.layers; ++i) {
      x = layer(i, x);
      builder_.debug_output(x);
    }
    const uint32_t last = parts_.layer_norm("final_norm", builder_.take_rows("tail", x),
                                            "transformer.norm", width, config_.shape.epsilon);
    builder_.logits(last, parts_.matrix("generator.weight", vocabulary, width),
                    parts_.vector("generator.bias", vocabulary));
  }

 private:
  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string of = "transformer.layers." + std::to_string(index) + ".";
    const uint32_t width = config_.shape.width;
    for (const char* unused : {"norm_self_attn.weight", "norm_self_attn.bias"}) {
      checkpoint_.ignore_tensor(of + unused);
    }
    const uint32_t attended =
        parts_.linear(name + ".attention.out", attention(name, x, of + "attn."), of + "attn.output",
                      width, width);
    const uint32_t y = builder_.add(name + ".attended", x, attended);
    const uint32_t z =
        parts_.layer_norm(name + ".ff.normed", y, of + "norm_ff", width, config_.shape.epsilon);
    return builder_.add("hidden_states." + std::to_string(index + 1), y,
                        labml_feed_forward(checkpoint_, builder_, parts_, name + ".ff", z,
                                           of + "feed_forward.", config_.shape));
  }

  uint32_t attention(const std::string& name, uint32_t x, const std::string& of) {
    const uint32_t width = config_.shape.width, heads = config_.heads;
    const auto project = [&](const char* which, uint32_t out) {
      return parts_.linear(name + "." + which, x, of + which + ".linear", width, out, false);
    };
    GraphBuilder::Recurrence rule;
    rule.heads = rule.key_heads = heads;
    rule.q = builder_.feature_map(name + ".q", project("query", width), config_.map);
    rule.k = builder_.feature_map(name + ".k", project("key", width), config_.map);
    rule.v = project("value", width);
    rule.factor = builder_.activate(name + ".beta", project("interpolation_weight.0", heads),
                                    schema::Activation::Sigmoid);
    rule.delta = true;
    rule.state = builder_.state("state." + name, 2 * width * config_.map.order, width / heads);
    const uint32_t y = builder_.recurrence(name + ".attention", rule);
    builder_.debug_output(y);
    return y;
  }

  const Checkpoint& checkpoint_;
  const FastWeights& config_;
  GraphBuilder builder_;
  Parts parts_;
  uint32_t max_segment_ = 0;
};

FastWeights read(const Checkpoint& checkpoint) {
  FastWeights config;
  config.shape = read_labml_stack(checkpoint);
  config.heads = checkpoint.size("heads", 1, config.shape.width);
  require_multiple(checkpoint, "d_model", config.shape.width, "heads", config.heads);
  config.map.heads = config.heads;
  config.map.order = checkpoint.size("nu", 1, 64, 1);
  config.map.epsilon = static_cast<float>(checkpoint.number("eps", 1e-20, 1, 1e-6));
  checkpoint.ignore_keys({"seq_len"});
  return config;
}

}  // namespace

void import_labml_fast_weights(const Checkpoint& checkpoint, const ImportOptions& options,
                               Graph& graph) {
  const FastWeights config = read(checkpoint);
  Builder builder(checkpoint, options, config, graph);
  builder.build();
  write_metadata(checkpoint, graph,
                 {{"d_ff", config.shape.inner},
                  {"d_model", config.shape.width},
                  {"heads", config.heads},
                  {"layers", config.shape.layers},
                  {"max_segment", builder.max_segment()},
                  {"vocabulary", config.shape.vocabulary}});
  graph.model.metadata->time_major = true;
}

}  // namespace oxbow::convert
