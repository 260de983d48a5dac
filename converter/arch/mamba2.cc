// Mamba-2 as in Hugging Face transformers (Dao and Gu 2024): a state-space model with one decay for each head and
// token, behind a short convolution. A step of one token clamps its time step as longer runs do; the original
// does not, which makes its results depend on how a stream is cut.

#include <cmath>
#include <limits>

#include "converter/blocks/recurrent.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

struct Mamba2 {
  uint32_t vocabulary, width, layers, heads, head_width, state, groups, taps;
  float epsilon;
  double least_step, most_step;
  bool bias, conv_bias, tied;
  schema::Activation activation;
  std::string prefix;

  uint32_t inner() const { return heads * head_width; }
  uint32_t channels() const { return inner() + 2 * groups * state; }
};

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const Mamba2& config,
          Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        graph_(graph),
        builder_(graph),
        parts_(checkpoint, builder_) {
    max_segment_ = begin_stream(checkpoint, options, config.vocabulary, graph, builder_);
  }

  void build() {
    const uint32_t vocabulary = config_.vocabulary, width = config_.width;
    const uint32_t words = parts_.matrix(config_.prefix + "embeddings.weight", vocabulary, width);
    uint32_t x = builder_.embedding("embedded", builder_.tokens(), words);
    for (uint32_t i = 0; i < config_.layers; ++i) {
      x = layer(i, x);
      builder_.debug_output(x);
    }
    const uint32_t last = parts_.rms_norm("hidden_states." + std::to_string(config_.layers),
                                          builder_.take_rows("tail", x), config_.prefix + "norm_f",
                                          width, config_.epsilon);
    builder_.debug_output(last);
    builder_.logits(
        last,
        head_matrix(checkpoint_, parts_, config_.tied, words, "lm_head.weight", vocabulary, width),
        GraphBuilder::kNone);
    write_metadata(checkpoint_, graph_,
                   {{"d_model", width},
                    {"heads", config_.heads},
                    {"layers", config_.layers},
                    {"max_segment", max_segment_},
                    {"state_size", config_.state},
                    {"vocabulary", vocabulary}});
    graph_.model.metadata->transposed_states = transposed_;
    read_generation(checkpoint_, vocabulary, graph_);
  }

 private:
  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string of = config_.prefix + "layers." + std::to_string(index) + ".";
    const std::string name = "layer" + std::to_string(index);
    const uint32_t z =
        parts_.rms_norm(name + ".normed", x, of + "norm", config_.width, config_.epsilon);
    const uint32_t mixed =
        parts_.linear(name + ".out", mix(name, z, of + "mixer."), of + "mixer.out_proj",
                      config_.inner(), config_.width, config_.bias);
    return builder_.add("hidden_states." + std::to_string(index), x, mixed);
  }

  uint32_t mix(const std::string& name, uint32_t z, const std::string& of) {
    const uint32_t inner = config_.inner(), keys = config_.groups * config_.state;
    const uint32_t all = inner + config_.channels() + config_.heads;
    // [ gate | x, B and C, which go through the convolution | time steps ]
    const auto project = [&](const char* part, uint32_t first, uint32_t count) {
      return parts_.linear_rows(name + part, z, of + "in_proj", config_.width, all, first, count,
                                config_.bias);
    };
    const uint32_t gate =
        builder_.activate(name + ".gate", project(".gate_in", 0, inner), schema::Activation::Silu);
    const std::string state = "state." + name;
    const uint32_t mixed = builder_.activate(
        name + ".xbc",
        parts_.causal_convolution(name + ".conv", project(".xbc_in", inner, config_.channels()),
                                  of + "conv1d", config_.channels(), config_.taps,
                                  config_.conv_bias, state + ".conv"),
        config_.activation);
    const uint32_t shifted = builder_.add(
        name + ".dt_biased", project(".dt_in", inner + config_.channels(), config_.heads),
        parts_.vector(of + "dt_bias", config_.heads));
    const uint32_t steps = clamp_steps(
        name + ".dt", builder_.activate(name + ".dt", shifted, schema::Activation::Softplus));

    GraphBuilder::Recurrence rule;
    rule.heads = config_.heads;
    rule.key_heads = config_.groups;
    rule.v = builder_.slice_columns(name + ".x", mixed, 0, inner);
    rule.k = builder_.slice_columns(name + ".b", mixed, inner, keys);
    rule.q = builder_.slice_columns(name + ".c", mixed, inner + keys, keys);
    rule.factor = steps;
    std::vector<float> rates = checkpoint_.vector(of + "A_log", config_.heads);
    for (float& rate : rates) rate = static_cast<float>(-std::exp(double{rate}));
    rule.decay =
        builder_.activate(name + ".decay",
                          builder_.multiply(name + ".log_decay", steps,
                                            row_weight(builder_, of + "A", std::move(rates))),
                          schema::Activation::Exp);
    rule.state = builder_.state(state + ".ssm", config_.heads * config_.state, config_.head_width);
    transposed_.insert(transposed_.end(), {state + ".ssm", state + ".conv"});
    const uint32_t read = builder_.recurrence(name + ".read", rule);
    const uint32_t skipped =
        builder_.multiply(name + ".skipped", rule.v, parts_.vector(of + "D", config_.heads));
    const uint32_t gated =
        builder_.multiply(name + ".gated", builder_.add(name + ".y", read, skipped), gate);
    return builder_.rms_norm(name + ".gated.normed", gated,
                             parts_.vector(of + "norm.weight", inner), config_.epsilon,
                             config_.groups);
  }

  /// Within time_step_limit, unless that holds for every softplus.
  uint32_t clamp_steps(const std::string& name, uint32_t steps) {
    const double low = config_.least_step, high = config_.most_step;
    if (low <= 0 && std::isinf(high)) return steps;
    const bool open = std::isinf(high);
    const double middle = open ? low : (low + high) / 2;
    const uint32_t shifted =
        builder_.add(name + ".shifted", steps,
                     row_weight(builder_, name + ".minus_middle", {static_cast<float>(-middle)}));
    const uint32_t clamped =
        open ? builder_.activate(name + ".clamped", shifted, schema::Activation::Relu)
             : builder_.activate(name + ".clamped", shifted, schema::Activation::Clamp,
                                 static_cast<float>((high - low) / 2));
    return builder_.add(name + ".limited", clamped,
                        row_weight(builder_, name + ".middle", {static_cast<float>(middle)}));
  }

  const Checkpoint& checkpoint_;
  const Mamba2& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  uint32_t max_segment_ = 0;
  std::vector<std::string> transposed_;
};

Mamba2 read(const Checkpoint& checkpoint) {
  Mamba2 config;
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.width = checkpoint.size("hidden_size", 1, kMaxSize);
  config.layers = checkpoint.size("num_hidden_layers", 1, kMaxLayers);
  config.heads = checkpoint.size("num_heads", 1, 1 << 14);
  config.head_width = checkpoint.size("head_dim", 1, 1 << 14);
  config.state = checkpoint.size("state_size", 1, 1 << 14);
  config.groups = checkpoint.size("n_groups", 1, config.heads);
  config.taps = checkpoint.size("conv_kernel", 1, 1 << 10);
  require_multiple(checkpoint, "num_heads", config.heads, "n_groups", config.groups);
  const double expand = checkpoint.number("expand", 0, 64, 2);
  if (std::llround(expand * config.width) != int64_t{config.inner()}) {
    checkpoint.refuse("num_heads * head_dim is " + std::to_string(config.inner()) +
                      ", expected expand * hidden_size, " +
                      std::to_string(std::llround(expand * config.width)));
  }
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_epsilon", 1e-12, 1, 1e-5));
  config.bias = checkpoint.flag("use_bias", false);
  config.conv_bias = checkpoint.flag("use_conv_bias", true);
  config.tied = checkpoint.flag("tie_word_embeddings", false);
  // That of the convolution; gates are Silu's.
  config.activation = read_activation(checkpoint, "hidden_act", "silu");
  require_flag(checkpoint, "rms_norm", true);
  const std::vector<double> limits = checkpoint.numbers("time_step_limit");
  config.least_step = limits.empty() ? 0.0 : limits[0];
  config.most_step = limits.size() < 2 ? std::numeric_limits<double>::infinity() : limits[1];
  if (!limits.empty() && (limits.size() != 2 || !std::isfinite(limits[0]) || limits[0] < 0 ||
                          !(limits[1] > limits[0]))) {
    checkpoint.refuse("time_step_limit has " + std::to_string(limits.size()) +
                      " numbers, expected two from 0 up, the greater one last");
  }
  config.prefix = optional_prefix(checkpoint, "backbone.", "embeddings.weight");
  // How weights were initialised and sums are split up.
  checkpoint.ignore_keys({"chunk_size", "rescale_prenorm_residual", "residual_in_fp32",
                          "time_step_floor", "time_step_max", "time_step_min", "time_step_rank",
                          "norm_before_gate", "time_step_init_scheme", "time_step_scale"});
  ignore_common_keys(checkpoint);
  return config;
}

}  // namespace

void import_mamba2(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Mamba2 config = read(checkpoint);
  Builder(checkpoint, options, config, graph).build();
}

}  // namespace oxbow::convert
