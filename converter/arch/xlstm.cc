// xLSTM as in Hugging Face transformers: layers of mLSTM, whose memory is a matrix for each head, with
// exponential gates kept in bounds by their greatest exponent.

#include <cmath>

#include "converter/blocks/recurrent.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

struct Xlstm {
  uint32_t vocabulary, width, heads, keys, values, inner, layers;
  float norm_epsilon, epsilon, gate_cap, output_cap;
  bool bias, fused, tied;
};

/// The next multiple of `multiple` that is not below factor * width.
uint32_t rounded(const Checkpoint& checkpoint, const std::string& key, uint32_t width,
                 double factor, uint32_t multiple) {
  const double whole = std::floor((width * factor + multiple - 1) / multiple) * multiple;
  if (whole < 1 || whole > kMaxSize) {
    checkpoint.refuse(key + " makes a width of " + std::to_string(whole) + ", expected 1 to " +
                      std::to_string(kMaxSize));
    return multiple;
  }
  return static_cast<uint32_t>(whole);
}

uint32_t truncated(const Checkpoint& checkpoint, const std::string& key, uint32_t width,
                   double factor) {
  const double whole = std::floor(width * factor);
  return rounded(checkpoint, key, 1, whole, 1);
}

/// The authors' library rounds the widths of keys and values up to a multiple of 64, Hugging Face's own layers do
/// not: the matrices tell.
bool is_rounded(const Checkpoint& checkpoint, const Xlstm& config) {
  const std::string prefix =
      optional_prefix(checkpoint, "backbone.", "embeddings.weight") + "blocks.0.mlstm_layer.";
  const std::string name = prefix + (config.fused ? "qkv_opreact.weight" : "q.weight");
  if (!checkpoint.has_tensor(name)) return true;
  const uint32_t rows = config.fused ? 2 * (config.keys + config.values) : config.keys;
  return stored_rows(checkpoint, name) == rows;
}

uint32_t read_same(const Checkpoint& checkpoint, const char* key, const char* other,
                   uint32_t most) {
  const bool has_key = checkpoint.has_value(key);
  const uint32_t value = checkpoint.size(has_key ? key : other, 1, most);
  const uint32_t second = checkpoint.size(other, 1, most, value);
  if (second == value) return value;
  checkpoint.refuse(other + std::string() + " is " + std::to_string(second) + ", expected " + key +
                    ", " + std::to_string(value));
  return value;
}

Xlstm read(const Checkpoint& checkpoint) {
  Xlstm config;
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.width = read_same(checkpoint, "hidden_size", "embedding_dim", kMaxSize);
  config.layers = read_same(checkpoint, "num_hidden_layers", "num_blocks", kMaxLayers);
  config.heads = checkpoint.size("num_heads", 1, config.width, 8);
  const auto factor = [&](const char* key, double fallback) {
    return checkpoint.number(key, 1e-3, 1e3, fallback);
  };
  config.fused = checkpoint.choice("weight_mode", "single", {"single", "fused"}) == "fused";
  const double keys = factor("qk_dim_factor", 0.5), values = factor("v_dim_factor", 1.0);
  config.keys = rounded(checkpoint, "qk_dim_factor", config.width, keys, 64);
  config.values = rounded(checkpoint, "v_dim_factor", config.width, values, 64);
  if (!is_rounded(checkpoint, config)) {
    config.keys = truncated(checkpoint, "qk_dim_factor", config.width, keys);
    config.values = truncated(checkpoint, "v_dim_factor", config.width, values);
  }
  require_multiple(checkpoint, "the width of keys", config.keys, "num_heads", config.heads);
  require_multiple(checkpoint, "the width of values", config.values, "num_heads", config.heads);
  config.inner =
      rounded(checkpoint, "ffn_proj_factor", config.width, factor("ffn_proj_factor", 2.667),
              checkpoint.size("ffn_round_up_to_multiple_of", 1, kMaxSize, 64));
  config.norm_epsilon = static_cast<float>(checkpoint.number("norm_eps", 1e-12, 1, 1e-6));
  config.epsilon = static_cast<float>(checkpoint.number("eps", 1e-12, 1, 1e-6));
  config.gate_cap = static_cast<float>(checkpoint.number("gate_soft_cap", 1e-3, 1e6, 15));
  config.output_cap = static_cast<float>(checkpoint.number("output_logit_soft_cap", 1e-3, 1e6, 30));
  config.bias = checkpoint.flag("use_bias", false);
  // Hugging Face's model has that norm whatever add_out_norm says.
  checkpoint.flag("add_out_norm", true);
  // The original never ties them.
  config.tied =
      checkpoint.flag("tie_word_embeddings", false) && !checkpoint.has_tensor("lm_head.weight");
  require_flag(checkpoint, "is_encoder_decoder", false);
  // How the original computes the same.
  checkpoint.ignore_keys({"autocast_kernel_dtype", "chunk_size", "chunkwise_kernel",
                          "inference_state_dtype", "max_inference_chunksize", "mode",
                          "norm_reduction_force_float32", "return_last_states", "sequence_kernel",
                          "step_kernel"});
  ignore_common_keys(checkpoint);
  return config;
}

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const Xlstm& config, Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        graph_(graph),
        builder_(graph),
        parts_(checkpoint, builder_) {}

  void build(const ImportOptions& options) {
    const uint32_t vocabulary = config_.vocabulary, width = config_.width;
    const uint32_t segment = begin_stream(checkpoint_, options, vocabulary, graph_, builder_);
    const std::string prefix = optional_prefix(checkpoint_, "backbone.", "embeddings.weight");
    const uint32_t words = parts_.matrix(prefix + "embeddings.weight", vocabulary, width);
    uint32_t x = builder_.embedding("embedded", builder_.tokens(), words);
    for (uint32_t i = 0; i < config_.layers; ++i) {
      builder_.debug_output(x, "hidden_states." + std::to_string(i));
      x = layer(i, x, prefix + "blocks." + std::to_string(i) + ".");
    }
    uint32_t last = builder_.take_rows("tail", x);
    if (checkpoint_.has_tensor(prefix + "out_norm.weight")) {
      // It has no bias, whatever use_bias says.
      last = parts_.rms_norm("last", last, prefix + "out_norm", width, config_.norm_epsilon);
    }
    builder_.debug_output(last, "hidden_states." + std::to_string(config_.layers));
    builder_.logits(
        last,
        head_matrix(checkpoint_, parts_, config_.tied, words, "lm_head.weight", vocabulary, width),
        GraphBuilder::kNone, config_.output_cap);
    write_metadata(checkpoint_, graph_,
                   {{"d_ff", config_.inner},
                    {"d_model", width},
                    {"heads", config_.heads},
                    {"layers", config_.layers},
                    {"max_segment", segment},
                    {"vocabulary", vocabulary}});
    read_generation(checkpoint_, vocabulary, graph_);
  }

 private:
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    const uint32_t y = parts_.rms_norm(name, x, of, config_.width, config_.norm_epsilon);
    if (!config_.bias) return y;
    return builder_.add(name + ".biased", y, parts_.vector(of + ".bias", config_.width));
  }

  uint32_t layer(uint32_t index, uint32_t x, const std::string& of) {
    const std::string name = "layer" + std::to_string(index);
    const uint32_t y = builder_.add(
        name + ".mixed", x,
        mlstm(index, name, norm(name + ".normed", x, of + "norm_mlstm"), of + "mlstm_layer."));
    return builder_.add(
        name + ".out", y,
        feed_forward(name + ".ff", norm(name + ".ff.normed", y, of + "norm_ffn"), of + "ffn."));
  }

  /// One of the parts that a fused layer has side by side.
  struct Part {
    const char* single;
    uint32_t first, width;
  };
  uint32_t project(const std::string& name, uint32_t z, const std::string& of, const char* fused,
                   uint32_t all, const Part& part, bool bias) {
    if (!config_.fused) {
      return parts_.linear(name, z, of + part.single, config_.width, part.width, bias);
    }
    return parts_.linear_rows(name, z, of + fused, config_.width, all, part.first, part.width,
                              bias);
  }

  uint32_t mlstm(uint32_t index, const std::string& name, uint32_t z, const std::string& of) {
    const uint32_t keys = config_.keys, values = config_.values, heads = config_.heads;
    const std::string state = "state.layer" + std::to_string(index);
    const auto part = [&](const char* suffix, const Part& which) {
      return project(name + suffix, z, of, "qkv_opreact", 2 * keys + 2 * values, which,
                     config_.bias);
    };
    const auto gate = [&](const char* suffix, const Part& which) {
      return builder_.activate(
          name + suffix,
          project(name + suffix + ".in", z, of, "ifgate_preact", 2 * heads, which, true),
          schema::Activation::SoftCap, config_.gate_cap);
    };
    const uint32_t q =
        builder_.multiply(name + ".q", part(".q.in", {"q", 0, keys}),
                          row_weight(builder_, name + ".q.scale",
                                     std::vector<float>(keys, attention_scale(keys / heads))));
    GraphBuilder::Recurrence options;
    options.heads = options.key_heads = heads;
    options.q = q;
    options.k = part(".k", {"k", keys, keys});
    options.v = part(".v", {"v", 2 * keys, values});
    options.state = builder_.state(state + ".c", keys, values / heads);
    options.normaliser = schema::Normaliser::Floored;
    options.normaliser_state = builder_.state(state + ".n", heads, keys / heads);
    options.epsilon = config_.epsilon;
    schema::ScanOptionsT gates;
    gates.rule = schema::ScanRule::ExponentialGates;
    const std::vector<uint32_t> made =
        builder_.scan(name + ".gates", gates,
                      {gate(".input_gate", {"igate_preact", 0, heads}),
                       gate(".forget_gate", {"fgate_preact", heads, heads})},
                      {builder_.state(state + ".m", 1, heads)});
    options.decay = made[0];
    options.factor = made[1];
    options.floor = made[2];
    const uint32_t read = builder_.recurrence(name + ".read", options);

    const uint32_t bias = config_.bias ? parts_.vector(of + "multihead_norm.bias", values)
                                       : row_weight(builder_, of + "multihead_norm.no_bias",
                                                    std::vector<float>(values));
    const uint32_t normed = builder_.layer_norm(name + ".read.normed", read,
                                                parts_.vector(of + "multihead_norm.weight", values),
                                                bias, config_.norm_epsilon, heads);
    const uint32_t open = builder_.activate(
        name + ".output_gate", part(".output_gate.in", {"ogate_preact", 2 * keys + values, values}),
        schema::Activation::Sigmoid);
    return parts_.linear(name + ".mlstm.out", builder_.multiply(name + ".gated", normed, open),
                         of + "out_proj", values, config_.width, config_.bias);
  }

  uint32_t feed_forward(const std::string& name, uint32_t z, const std::string& of) {
    const uint32_t inner = config_.inner;
    const auto part = [&](const char* suffix, const Part& which) {
      return project(name + suffix, z, of, "proj_up_gate_z", 2 * inner, which, config_.bias);
    };
    const uint32_t gate = builder_.activate(
        name + ".gate", part(".gate.in", {"proj_up_gate", 0, inner}), schema::Activation::Silu);
    const uint32_t up = part(".up", {"proj_up", inner, inner});
    return parts_.linear(name + ".out", builder_.multiply(name + ".gated", gate, up),
                         of + "proj_down", inner, config_.width, config_.bias);
  }

  const Checkpoint& checkpoint_;
  const Xlstm& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
};

}  // namespace

void import_xlstm(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Xlstm config = read(checkpoint);
  Builder(checkpoint, config, graph).build(options);
}

}  // namespace oxbow::convert
