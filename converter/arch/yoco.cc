// YOCO as in microsoft/unilm (Sun et al. 2024): the first half of the layers keep little, by gated retention or a
// sliding window; the second half all attend to one cache of keys and values made from what the first half gives.

#include <cmath>

#include "converter/blocks/causal_decoder.h"
#include "converter/blocks/recurrent.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// Of the logarithm of the gates.
constexpr double kGateDivisor = 16.0;

struct Yoco {
  uint32_t vocabulary, width, inner, layers, self_heads, heads, kv_heads, window, context;
  float epsilon;
  double theta;
  bool tied;

  uint32_t self_head_width() const { return width / self_heads; }
  uint32_t head_width() const { return width / heads; }
};

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const Yoco& config,
          Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        graph_(graph),
        builder_(graph),
        parts_(checkpoint, builder_) {
    GraphBuilder::Entry entry;
    entry.vocabulary = config.vocabulary;
    entry.max_segment = std::min(read_segment(checkpoint, options), config.context);
    entry.capacity = config.context;
    entry.any_pieces = true;
    builder_.begin_entry(entry);
    max_segment_ = entry.max_segment;
    graph.model.task = schema::Task::Generate;
    graph.keeps_context = true;
    self_angles_ = angles("self", config.self_head_width());
    cross_angles_ = config.head_width() == config.self_head_width()
                        ? self_angles_
                        : angles("cross", config.head_width());
  }

  void build() {
    const uint32_t vocabulary = config_.vocabulary, width = config_.width;
    const uint32_t words = parts_.matrix("embed_tokens.weight", vocabulary, width);
    uint32_t x = builder_.embedding("embedded", builder_.tokens(), words,
                                    static_cast<float>(std::sqrt(static_cast<double>(width))));
    const uint32_t half = config_.layers / 2;
    for (uint32_t i = 0; i < half; ++i) {
      const std::string of = "self_decoder.layers." + std::to_string(i) + ".";
      x = layer("self" + std::to_string(i), x, of, [&](const std::string& name, uint32_t z) {
        return config_.window != 0 ? window_attention(i, name, z, of + "mixer.")
                                   : gated_retention(i, name, z, of + "mixer.");
      });
    }
    builder_.debug_output(x, "self_decoder.out");
    make_cache(x);
    for (uint32_t i = 0; i < config_.layers - half; ++i) {
      const std::string of = "cross_decoder.layers." + std::to_string(i) + ".";
      x = layer("cross" + std::to_string(i), x, of, [&](const std::string& name, uint32_t z) {
        return cross_attention(name, z, of + "mixer.");
      });
    }
    builder_.ring_push({keys_.k, keys_.v}, {cache_.k, cache_.v});
    const uint32_t last = norm("final_norm", builder_.take_rows("tail", x), "layer_norm");
    builder_.logits(last,
                    head_matrix(checkpoint_, parts_, config_.tied, words,
                                "output_projection.weight", vocabulary, width),
                    GraphBuilder::kNone);
    write_metadata(checkpoint_, graph_,
                   {{"context", config_.context},
                    {"d_ff", config_.inner},
                    {"d_model", width},
                    {"heads", config_.heads},
                    {"kv_heads", config_.kv_heads},
                    {"layers", config_.layers},
                    {"max_segment", max_segment_},
                    {"self_heads", config_.self_heads},
                    {"vocabulary", vocabulary}});
    read_generation(checkpoint_, vocabulary, graph_);
  }

 private:
  uint32_t angles(const std::string& name, uint32_t head_width) {
    return builder_.rope_angles(name + ".angles",
                                row_weight(builder_, name + ".frequencies",
                                           linspace_frequencies(config_.theta, head_width / 2)));
  }
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    return parts_.rms_norm(name, x, of, config_.width, config_.epsilon);
  }
  uint32_t linear(const std::string& name, uint32_t x, const std::string& of, uint32_t in,
                  uint32_t out) {
    return parts_.linear(name, x, of, in, out, false);
  }

  template <typename Mixer>
  uint32_t layer(const std::string& name, uint32_t x, const std::string& of, const Mixer& mixer) {
    const uint32_t width = config_.width, inner = config_.inner;
    const uint32_t mixed = mixer(name, norm(name + ".normed", x, of + "mixer_layer_norm"));
    const uint32_t y =
        builder_.add(name + ".mixed", x,
                     linear(name + ".mixed_out", mixed, of + "mixer.out_proj", width, width));
    const uint32_t z = norm(name + ".ff.normed", y, of + "final_layer_norm");
    const uint32_t active = builder_.activate(
        name + ".ff.active", linear(name + ".ff.wide", z, of + "ffn.fc1", width, inner),
        schema::Activation::Silu);
    const uint32_t gated = builder_.multiply(
        name + ".ff.gated", active, linear(name + ".ff.gate", z, of + "ffn.gate", width, inner));
    return builder_.add(name + ".out", y,
                        linear(name + ".ff.out", gated, of + "ffn.fc2", inner, width));
  }

  uint32_t rotated(const std::string& name, uint32_t z, const std::string& of, uint32_t heads,
                   uint32_t head_width, uint32_t angles) {
    return builder_.rope(name, linear(name + "_in", z, of, config_.width, heads * head_width),
                         angles, heads, true);
  }

  uint32_t gated_retention(uint32_t index, const std::string& name, uint32_t z,
                           const std::string& of) {
    const uint32_t width = config_.width, heads = config_.self_heads;
    GraphBuilder::Recurrence rule;
    rule.heads = rule.key_heads = heads;
    rule.q = rotated(name + ".q", z, of + "q_proj", heads, config_.self_head_width(), self_angles_);
    rule.k = builder_.rope(
        name + ".k",
        builder_.linear(
            name + ".k_in", z,
            scaled_matrix(checkpoint_, builder_, of + "k_proj", width, width,
                          1.0 / std::sqrt(static_cast<double>(config_.self_head_width()))),
            GraphBuilder::kNone),
        self_angles_, heads, true);
    rule.v = linear(name + ".v", z, of + "v_proj", width, width);
    // sigmoid(x)^(1/16) = exp(-softplus(-x) / 16)
    const uint32_t gates = builder_.activate(
        name + ".gates",
        builder_.linear(name + ".gates_in", z,
                        scaled_matrix(checkpoint_, builder_, of + "gt_proj", width, heads, -1.0),
                        GraphBuilder::kNone),
        schema::Activation::Softplus);
    rule.decay = builder_.activate(
        name + ".decay",
        builder_.multiply(
            name + ".log_decay", gates,
            row_weight(builder_, name + ".divisor", {static_cast<float>(-1.0 / kGateDivisor)})),
        schema::Activation::Exp);
    rule.state =
        builder_.state("state.layer" + std::to_string(index), width, config_.self_head_width());
    const uint32_t normed =
        builder_.rms_norm(name + ".retained.normed", builder_.recurrence(name + ".retained", rule),
                          GraphBuilder::kNone, config_.epsilon, heads);
    const uint32_t gate =
        builder_.activate(name + ".gate", linear(name + ".gate_in", z, of + "g_proj", width, width),
                          schema::Activation::Silu);
    return builder_.multiply(name + ".gated", normed, gate);
  }

  GraphBuilder::Source ring_states(const std::string& name, uint32_t rows, uint32_t width) {
    const uint32_t ring = builder_.ring(name, rows);
    return {builder_.ring_state(name + "key", ring, width),
            builder_.ring_state(name + "value", ring, width)};
  }

  uint32_t window_attention(uint32_t index, const std::string& name, uint32_t z,
                            const std::string& of) {
    const uint32_t heads = config_.self_heads, head_width = config_.self_head_width();
    const uint32_t q = rotated(name + ".q", z, of + "q_proj", heads, head_width, self_angles_);
    const uint32_t k = rotated(name + ".k", z, of + "k_proj", heads, head_width, self_angles_);
    const uint32_t v = linear(name + ".v", z, of + "v_proj", config_.width, config_.width);
    GraphBuilder::Attention options;
    options.heads = options.kv_heads = heads;
    options.scale = attention_scale(head_width);
    options.pattern.kind = schema::PatternKind::Window;
    options.pattern.before = config_.window - 1;
    options.pattern.causal = true;
    if (config_.window == 1) {
      options.sources = {{k, v}};
      return builder_.attention(name + ".attention", q, options);
    }
    const GraphBuilder::Source memory =
        ring_states("state.layer" + std::to_string(index) + ".", config_.window - 1, config_.width);
    options.sources = {memory, {k, v}};
    const uint32_t attended = builder_.attention(name + ".attention", q, options);
    builder_.ring_push({k, v}, {memory.k, memory.v});
    return attended;
  }

  /// The one pair of keys and values of the second half.
  void make_cache(uint32_t x) {
    const uint32_t keys = config_.kv_heads * config_.head_width();
    const uint32_t z = norm("cache.normed", x, "cross_decoder.kv_layer_norm");
    keys_.k = rotated("cache.k", z, "cross_decoder.k_proj", config_.kv_heads, config_.head_width(),
                      cross_angles_);
    keys_.v = linear("cache.v", z, "cross_decoder.v_proj", config_.width, keys);
    cache_ = ring_states("state.cross_", config_.context, keys);
  }

  uint32_t cross_attention(const std::string& name, uint32_t z, const std::string& of) {
    GraphBuilder::Attention options;
    options.heads = config_.heads;
    options.kv_heads = config_.kv_heads;
    options.scale = attention_scale(config_.head_width());
    options.sources = {cache_, keys_};
    return builder_.attention(
        name + ".attention",
        rotated(name + ".q", z, of + "q_proj", config_.heads, config_.head_width(), cross_angles_),
        options);
  }

  const Checkpoint& checkpoint_;
  const Yoco& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  uint32_t max_segment_ = 0;
  uint32_t self_angles_ = 0, cross_angles_ = 0;
  /// This run's, and those before.
  GraphBuilder::Source keys_ = {}, cache_ = {};
};

Yoco read(const Checkpoint& checkpoint, const ImportOptions& options) {
  Yoco config;
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.width = checkpoint.size("dim", 2, kMaxSize);
  config.inner = checkpoint.size("hidden_dim", 1, kMaxSize);
  config.layers = checkpoint.size("n_layers", 2, kMaxLayers);
  require_multiple(checkpoint, "n_layers", config.layers, "2: half of them keep little,", 2);
  config.self_heads = checkpoint.size("n_self_heads", 1, config.width);
  config.heads = checkpoint.size("n_attn_heads", 1, config.width);
  config.kv_heads = checkpoint.size("n_attn_kv_heads", 1, config.heads, config.heads);
  require_multiple(checkpoint, "dim", config.width, "2 * n_self_heads", 2 * config.self_heads);
  require_multiple(checkpoint, "dim", config.width, "2 * n_attn_heads", 2 * config.heads);
  require_multiple(checkpoint, "n_attn_heads", config.heads, "n_attn_kv_heads", config.kv_heads);
  config.window = checkpoint.size("sliding_window", 1, kMaxSize, 0);
  config.epsilon = static_cast<float>(checkpoint.number("norm_eps", 1e-12, 1, 1e-5));
  config.theta = checkpoint.number("rope_theta", 1, 1e12, 1e4);
  config.tied = checkpoint.flag("share_input_output_embed", false);
  config.context = checkpoint.size("max_seq_len", 1, kMaxSize, kDefaultContext);
  if (options.context != 0) config.context = options.context;
  if (options.ring || options.sinks != 0) {
    throw UsageError("--ring and --sinks are for caches of each layer; yoco has one for all");
  }
  checkpoint.ignore_keys({"max_batch_size", "model_parallel_size", "load_checkpoint"});
  ignore_common_keys(checkpoint);
  return config;
}

}  // namespace

void import_yoco(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Yoco config = read(checkpoint, options);
  Builder(checkpoint, options, config, graph).build();
}

}  // namespace oxbow::convert
