// RWKV-7 as in BlinkDL/RWKV-LM: a matrix state that forgets by channel and takes out what the key finds there. The
// files have no configuration; every size is that of a tensor.

#include <cmath>

#include "converter/blocks/recurrent.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// e^(-1/2), as the reference has it.
constexpr double kLargestRate = 0.606531;

struct Rwkv7 {
  uint32_t vocabulary, width, layers, heads, head_width, inner;
  float epsilon, group_epsilon;
};

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const Rwkv7& config,
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
    uint32_t x = norm("embedded.normed",
                      builder_.embedding("embedded", builder_.tokens(),
                                         parts_.matrix("emb.weight", vocabulary, width)),
                      "blocks.0.ln0");
    builder_.debug_output(x, "hidden_states.0");
    for (uint32_t i = 0; i < config_.layers; ++i) {
      x = layer(i, x);
      builder_.debug_output(x, "hidden_states." + std::to_string(i + 1));
    }
    const uint32_t last = norm("final_norm", builder_.take_rows("tail", x), "ln_out");
    builder_.logits(last, parts_.matrix("head.weight", vocabulary, width), GraphBuilder::kNone);
    write_metadata(checkpoint_, graph_,
                   {{"d_ff", config_.inner},
                    {"d_model", width},
                    {"heads", config_.heads},
                    {"layers", config_.layers},
                    {"max_segment", max_segment_},
                    {"vocabulary", vocabulary}});
    graph_.model.metadata->transposed_states = transposed_;
    read_generation(checkpoint_, vocabulary, graph_);
  }

 private:
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    return parts_.layer_norm(name, x, of, config_.width, config_.epsilon);
  }
  uint32_t linear(const std::string& name, uint32_t x, const std::string& of, uint32_t in,
                  uint32_t out) {
    return parts_.linear(name, x, of, in, out, false);
  }
  /// A vector that may be stored as [1, 1, width].
  std::vector<float> vector(const std::string& name) {
    return checkpoint_.tensor(name, checkpoint_.shape(name).size() == 3
                                        ? std::vector<uint64_t>{1, 1, config_.width}
                                        : std::vector<uint64_t>{config_.width});
  }
  uint32_t row(const std::string& name) { return row_weight(builder_, name, vector(name)); }

  /// x + (x of the token before - x) * mix, as a filter of two taps.
  uint32_t shifted(const std::string& name, uint32_t x, uint32_t memory, const std::string& mix) {
    std::vector<float> taps;
    for (const float before : vector(mix)) taps.insert(taps.end(), {before, 1.0f - before});
    schema::ConvolutionOptionsT options;
    options.heads = config_.width;
    options.taps = 2;
    options.left = 1;
    return builder_.convolution(name, x, builder_.weight(mix, config_.width, 2, std::move(taps)),
                                memory, options);
  }
  uint32_t shift_state(const std::string& name) {
    return builder_.ring_state(name, builder_.ring(name, 1), config_.width);
  }

  /// f(x first) second, both stored to be multiplied from the right, plus `bias` unless empty.
  uint32_t low_rank(const std::string& name, uint32_t x, const std::string& of, char letter,
                    schema::Activation activation, bool bias) {
    const std::string first = of + letter + "1", second = of + letter + "2";
    const std::vector<uint64_t>& shape = checkpoint_.shape(first);
    if (shape.size() != 2 || shape[1] == 0 || shape[1] > kMaxSize) {
      throw InputError("tensor " + first + " has " + std::to_string(shape.size()) +
                       " dimensions, expected a matrix");
    }
    const auto rank = static_cast<uint32_t>(shape[1]);
    const uint32_t width = config_.width;
    uint32_t z = builder_.linear(
        name + ".low", x,
        builder_.weight(first, rank, width,
                        transposed(checkpoint_.matrix(first, width, rank), width, rank)),
        GraphBuilder::kNone);
    if (activation != schema::Activation::None) {
      z = builder_.activate(name + ".low.active", z, activation);
    }
    return builder_.linear(
        name, z,
        builder_.weight(second, width, rank,
                        transposed(checkpoint_.matrix(second, rank, width), rank, width)),
        bias ? row(of + letter + "0") : GraphBuilder::kNone);
  }
  uint32_t gate(const std::string& name, uint32_t x, const std::string& of, char letter) {
    return builder_.activate(name,
                             low_rank(name + "_in", x, of, letter, schema::Activation::None, true),
                             schema::Activation::Sigmoid);
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string of = "blocks." + std::to_string(index) + ".";
    for (const char* deep : {"ffn.s_emb.weight", "qkv.q_emb.weight", "qkv.qq.weight"}) {
      if (checkpoint_.has_tensor(of + deep)) {
        throw InputError("tensor " + of + deep + " is there: RWKV-7a, 7b and 8 are not supported");
      }
    }
    const uint32_t y =
        builder_.add(name + ".mixed", x,
                     time_mix(index, name, norm(name + ".normed", x, of + "ln1"), of + "att."));
    return builder_.add(name + ".out", y,
                        channel_mix(name, norm(name + ".ff.normed", y, of + "ln2"), of + "ffn."));
  }

  uint32_t time_mix(uint32_t index, const std::string& name, uint32_t x, const std::string& of) {
    const uint32_t width = config_.width, heads = config_.heads;
    const std::string state = "state." + name;
    const uint32_t before = shift_state(state + ".att_shift");
    const auto mixed = [&](char letter) {
      return shifted(name + ".x" + letter, x, before, of + "x_" + letter);
    };
    const uint32_t xr = mixed('r'), xw = mixed('w'), xk = mixed('k'), xv = mixed('v'),
                   xa = mixed('a'), xg = mixed('g');
    builder_.ring_push({x}, {before});

    const uint32_t r = linear(name + ".r", xr, of + "receptance", width, width);
    const uint32_t key = linear(name + ".key", xk, of + "key", width, width);
    uint32_t v = linear(name + ".value", xv, of + "value", width, width);
    const uint32_t rate = builder_.activate(
        name + ".rate", low_rank(name + ".rate_in", xw, of, 'w', schema::Activation::Tanh, true),
        schema::Activation::Sigmoid);
    const uint32_t a = gate(name + ".a", xa, of, 'a');
    const uint32_t g = low_rank(name + ".g", xg, of, 'g', schema::Activation::Sigmoid, false);
    if (index == 0) {
      first_value_ = v;
      for (const char* unused : {"v0", "v1", "v2"}) checkpoint_.ignore_tensor(of + unused);
    } else {
      // v + (first - v) * gate
      const uint32_t to_first = gate(name + ".v_gate", xv, of, 'v');
      const uint32_t difference =
          builder_.add(name + ".v_difference", first_value_,
                       builder_.multiply(name + ".minus_v", v, minus_one()));
      v = builder_.add(name + ".v", v, builder_.multiply(name + ".v_part", difference, to_first));
    }

    const uint32_t direction =
        unit_heads(builder_, name + ".kk", builder_.multiply(name + ".kk_in", key, row(of + "k_k")),
                   heads, config_.head_width, 1e-24, 1.0);
    // key (1 + (a - 1) k_a)
    std::vector<float> rest = vector(of + "k_a");
    for (float& value : rest) value = 1.0f - value;
    const uint32_t factor =
        builder_.add(name + ".k_factor", builder_.multiply(name + ".a_part", a, row(of + "k_a")),
                     row_weight(builder_, of + "k_a.rest", std::move(rest)));
    const uint32_t k = builder_.multiply(name + ".k", key, factor);

    GraphBuilder::Recurrence rule;
    rule.heads = rule.key_heads = heads;
    rule.q = r;
    rule.k = k;
    rule.v = v;
    rule.decay = builder_.activate(
        name + ".decay",
        builder_.multiply(
            name + ".log_decay", rate,
            row_weight(builder_, name + ".largest_rate", {static_cast<float>(-kLargestRate)})),
        schema::Activation::Exp);
    rule.a = builder_.multiply(name + ".minus_kk", direction, minus_one());
    rule.b = builder_.multiply(name + ".kk_a", direction, a);
    rule.state = builder_.state(state + ".wkv", width, config_.head_width);
    transposed_.push_back(state + ".wkv");
    const uint32_t read = builder_.recurrence(name + ".wkv", rule);
    const uint32_t normed =
        builder_.layer_norm(name + ".wkv.normed", read, parts_.vector(of + "ln_x.weight", width),
                            parts_.vector(of + "ln_x.bias", width), config_.group_epsilon, heads);

    // What the token gives itself: v times the sum of r k r_k over its head. A mean of n times as much.
    std::vector<float> bonus = checkpoint_.matrix(of + "r_k", heads, config_.head_width);
    for (float& value : bonus) value *= static_cast<float>(config_.head_width);
    const uint32_t weighted =
        builder_.multiply(name + ".rk_weighted", builder_.multiply(name + ".rk", r, k),
                          row_weight(builder_, of + "r_k", std::move(bonus)));
    const uint32_t own = builder_.multiply(
        name + ".own", v,
        builder_.pool(name + ".rk_sum", weighted, config_.head_width, schema::Pooling::Mean, true));
    const uint32_t gated =
        builder_.multiply(name + ".gated", builder_.add(name + ".with_own", normed, own), g);
    return linear(name + ".mixed_out", gated, of + "output", width, width);
  }

  uint32_t channel_mix(const std::string& name, uint32_t x, const std::string& of) {
    const uint32_t width = config_.width, inner = config_.inner;
    const uint32_t before = shift_state("state." + name + ".ffn_shift");
    const uint32_t mixed = shifted(name + ".ff.x", x, before, of + "x_k");
    builder_.ring_push({x}, {before});
    const uint32_t wide = builder_.activate(
        name + ".ff.active", linear(name + ".ff.wide", mixed, of + "key", width, inner),
        schema::Activation::ReluSquared);
    return linear(name + ".ff.out", wide, of + "value", inner, width);
  }

  uint32_t minus_one() {
    if (minus_one_ == GraphBuilder::kNone) minus_one_ = row_weight(builder_, "minus_one", {-1.0f});
    return minus_one_;
  }

  const Checkpoint& checkpoint_;
  const Rwkv7& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  uint32_t max_segment_ = 0;
  uint32_t first_value_ = 0;
  uint32_t minus_one_ = GraphBuilder::kNone;
  std::vector<std::string> transposed_;
};

/// A size that a key may repeat.
uint32_t same_size(const Checkpoint& checkpoint, const std::string& key, uint32_t size) {
  return checkpoint.size(key, size, size, size);
}

uint32_t dimension(const Checkpoint& checkpoint, const std::string& name, size_t index) {
  const std::vector<uint64_t>& shape = checkpoint.shape(name);
  if (index >= shape.size() || shape[index] == 0 || shape[index] > kMaxSize) {
    throw InputError("tensor " + name + " has " + std::to_string(shape.size()) +
                     " dimensions, expected two sizes from 1 to " + std::to_string(kMaxSize));
  }
  return static_cast<uint32_t>(shape[index]);
}

Rwkv7 read(const Checkpoint& checkpoint) {
  Rwkv7 config;
  config.vocabulary = same_size(checkpoint, "vocab_size", dimension(checkpoint, "emb.weight", 0));
  config.width = same_size(checkpoint, "n_embd", dimension(checkpoint, "emb.weight", 1));
  const std::string heads = "blocks.0.att.r_k";
  config.heads = dimension(checkpoint, heads, 0);
  config.head_width = same_size(checkpoint, "head_size", dimension(checkpoint, heads, 1));
  if (uint64_t{config.heads} * config.head_width != config.width) {
    throw InputError("tensor " + heads + " has " + std::to_string(config.heads) + " heads of " +
                     std::to_string(config.head_width) + ", expected " +
                     std::to_string(config.width) + " elements in all");
  }
  config.inner =
      same_size(checkpoint, "dim_ffn", dimension(checkpoint, "blocks.0.ffn.key.weight", 0));
  config.layers = 0;
  while (config.layers < kMaxLayers &&
         checkpoint.has_tensor("blocks." + std::to_string(config.layers) + ".ln1.weight")) {
    ++config.layers;
  }
  if (config.layers == 0) throw InputError("tensor blocks.0.ln1.weight is missing");
  same_size(checkpoint, "n_layer", config.layers);
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-12, 1, 1e-5));
  config.group_epsilon = static_cast<float>(checkpoint.number("group_norm_eps", 1e-12, 1, 64e-5));
  for (const auto& [key, name] :
       {std::pair{"D_DECAY_LORA", "w1"}, {"D_AAA_LORA", "a1"}, {"D_GATE_LORA", "g1"}}) {
    same_size(checkpoint, key, dimension(checkpoint, std::string("blocks.0.att.") + name, 1));
  }
  if (config.layers > 1) {
    same_size(checkpoint, "D_MV_LORA", dimension(checkpoint, "blocks.1.att.v1", 1));
  } else {
    checkpoint.ignore_keys({"D_MV_LORA"});
  }
  ignore_common_keys(checkpoint);
  return config;
}

}  // namespace

void import_rwkv7(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Rwkv7 config = read(checkpoint);
  Builder(checkpoint, options, config, graph).build();
}

}  // namespace oxbow::convert
