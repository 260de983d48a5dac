// Mamba as in Hugging Face transformers: layers of a short convolution and a selective scan, no attention and
// no feed-forward part.

#include <cmath>

#include "converter/blocks/parts.h"
#include "converter/blocks/recurrent.h"
#include "converter/blocks/transformers_version.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

constexpr uint32_t kMaxTaps = 4096;

struct Mamba {
  uint32_t vocabulary, layers, width, inner, depth, rank, taps;
  float epsilon;
  schema::Activation activation, gate;
  bool bias, convolution_bias, tied;
};

/// Throws unless the key, an older name of another, agrees with it.
void require_same(const Checkpoint& checkpoint, const char* key, const char* other,
                  uint32_t value) {
  const uint32_t found = checkpoint.size(key, 1, kMaxSize, value);
  if (found == value) return;
  checkpoint.refuse(key + std::string() + " is " + std::to_string(found) + ", expected that of " +
                    other + ", " + std::to_string(value));
}

Mamba read(const Checkpoint& checkpoint) {
  Mamba config;
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.layers = checkpoint.size("num_hidden_layers", 1, kMaxLayers);
  config.width = checkpoint.size("hidden_size", 1, kMaxSize);
  const double expanded = checkpoint.number("expand", 1e-3, 1e3, 2) * config.width;
  if (expanded < 1 || expanded > kMaxSize) {
    checkpoint.refuse("expand times hidden_size is " + std::to_string(expanded) +
                      ", expected 1 to " + std::to_string(kMaxSize));
  }
  config.inner = static_cast<uint32_t>(std::clamp(expanded, 1.0, double{kMaxSize}));
  require_same(checkpoint, "intermediate_size", "expand times hidden_size", config.inner);
  require_same(checkpoint, "d_inner", "expand times hidden_size", config.inner);
  require_same(checkpoint, "d_model", "hidden_size", config.width);
  require_same(checkpoint, "n_layer", "num_hidden_layers", config.layers);
  config.depth = checkpoint.size("state_size", 1, 4096, 16);
  config.rank = (config.width + 15) / 16;
  if (!checkpoint.is_word("time_step_rank", "auto")) {
    config.rank = checkpoint.size("time_step_rank", 1, kMaxSize, config.rank);
  }
  config.taps = checkpoint.size("conv_kernel", 1, kMaxTaps, 4);
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_epsilon", 1e-12, 1, 1e-5));
  config.activation = read_activation(checkpoint, "hidden_act", "silu");
  // Since 5.15 the gate is SiLU whatever hidden_act says.
  config.gate =
      transformers_version(checkpoint) >= 515 ? schema::Activation::Silu : config.activation;
  config.bias = checkpoint.flag("use_bias", false);
  config.convolution_bias = checkpoint.flag("use_conv_bias", true);
  config.tied = checkpoint.flag("tie_word_embeddings", true);
  require_flag(checkpoint, "rms_norm", true);
  require_flag(checkpoint, "is_encoder_decoder", false);
  // How it was trained, and how the original computes the same.
  checkpoint.ignore_keys({"time_step_floor", "time_step_init_scheme", "time_step_max",
                          "time_step_min", "time_step_scale", "rescale_prenorm_residual",
                          "residual_in_fp32", "fused_add_norm", "pad_vocab_size_multiple",
                          "use_mambapy", "use_associative_scan"});
  ignore_common_keys(checkpoint);
  return config;
}

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const Mamba& config, Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        graph_(graph),
        builder_(graph),
        parts_(checkpoint, builder_) {}

  void build(const ImportOptions& options) {
    const uint32_t segment =
        begin_stream(checkpoint_, options, config_.vocabulary, graph_, builder_);
    const std::string prefix = optional_prefix(checkpoint_, "backbone.", "embeddings.weight");
    const uint32_t words =
        parts_.matrix(prefix + "embeddings.weight", config_.vocabulary, config_.width);
    uint32_t x = builder_.embedding("embedded", builder_.tokens(), words);
    for (uint32_t i = 0; i < config_.layers; ++i) {
      const std::string of = prefix + "layers." + std::to_string(i) + ".";
      const std::string name = "layer" + std::to_string(i);
      const uint32_t z =
          parts_.rms_norm(name + ".normed", x, of + "norm", config_.width, config_.epsilon);
      x = builder_.add(name + ".out", x, mixer(i, name, z, of + "mixer."));
      builder_.debug_output(x, "hidden_states." + std::to_string(i));
    }
    const uint32_t last = parts_.rms_norm("last", builder_.take_rows("tail", x), prefix + "norm_f",
                                          config_.width, config_.epsilon);
    builder_.debug_output(last, "hidden_states." + std::to_string(config_.layers));
    builder_.logits(last,
                    head_matrix(checkpoint_, parts_, config_.tied, words, "lm_head.weight",
                                config_.vocabulary, config_.width),
                    GraphBuilder::kNone);
    write_metadata(checkpoint_, graph_,
                   {{"d_inner", config_.inner},
                    {"d_model", config_.width},
                    {"d_state", config_.depth},
                    {"layers", config_.layers},
                    {"max_segment", segment},
                    {"vocabulary", config_.vocabulary}});
    graph_.model.metadata->transposed_states = transposed_;
    read_generation(checkpoint_, config_.vocabulary, graph_);
  }

 private:
  uint32_t mixer(uint32_t index, const std::string& name, uint32_t z, const std::string& of) {
    const uint32_t width = config_.width, inner = config_.inner;
    const std::string state = "state.layer" + std::to_string(index);
    transposed_.insert(transposed_.end(), {state + ".conv", state + ".ssm"});
    const auto half = [&](const std::string& part, uint32_t first) {
      return parts_.linear_rows(name + part, z, of + "in_proj", width, 2 * inner, first, inner,
                                config_.bias);
    };
    const uint32_t raw = half(".x", 0);
    const uint32_t gate = builder_.activate(name + ".gate", half(".gate.in", inner), config_.gate);
    const uint32_t filtered =
        parts_.causal_convolution(name + ".filtered", raw, of + "conv1d", inner, config_.taps,
                                  config_.convolution_bias, state + ".conv");
    const uint32_t x = builder_.activate(name + ".input", filtered, config_.activation);
    const uint32_t y = builder_.multiply(name + ".gated", scanned(name, state, x, of), gate);
    return parts_.linear(name + ".mixed", y, of + "out_proj", inner, width, config_.bias);
  }

  uint32_t scanned(const std::string& name, const std::string& state, uint32_t x,
                   const std::string& of) {
    const uint32_t inner = config_.inner, depth = config_.depth, rank = config_.rank;
    const auto part = [&](const std::string& what, uint32_t first, uint32_t out) {
      return parts_.linear_rows(name + what, x, of + "x_proj", inner, rank + 2 * depth, first, out,
                                false);
    };
    const uint32_t dt = builder_.activate(
        name + ".dt",
        parts_.linear(name + ".dt.in", part(".dt.low", 0, rank), of + "dt_proj", rank, inner),
        schema::Activation::Softplus);
    const uint32_t b = part(".b", rank, depth);
    const uint32_t c = part(".c", rank + depth, depth);
    std::vector<float> rates =
        transposed(checkpoint_.matrix(of + "A_log", inner, depth), inner, depth);
    for (float& rate : rates) rate = -std::exp(rate);
    schema::ScanOptionsT options;
    options.rule = schema::ScanRule::Selective;
    return builder_.scan(name + ".scanned", options,
                         {x, dt, b, c, builder_.weight(of + "A", depth, inner, std::move(rates)),
                          parts_.vector(of + "D", inner)},
                         {builder_.state(state + ".ssm", depth, inner)})[0];
  }

  const Checkpoint& checkpoint_;
  const Mamba& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  std::vector<std::string> transposed_;
};

}  // namespace

void import_mamba(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Mamba config = read(checkpoint);
  Builder(checkpoint, config, graph).build(options);
}

}  // namespace oxbow::convert
