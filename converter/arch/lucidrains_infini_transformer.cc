// Infini-attention as written by Phil Wang (lucidrains/infini-transformer-pytorch; Munkhdalai et al. 2024): local
// attention within a segment, mixed head by head with what a matrix remembers of all segments before.
//
//   step      a run ends a segment: what it wrote to the memory is seen from the next run on
//   continue  a run is part of a segment that a later one will end
//
// The matrix takes every token at once, in `kv_mem`; what queries see is a copy made when a segment ended.

#include <cmath>

#include "converter/blocks/recurrent.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

struct Infini {
  uint32_t vocabulary, width, layers, heads, head_width, inner, segment;
  bool delta;
  /// How much of a token goes into the memory is learned, for each head.
  bool learned_update;
};

/// What is the same in both entry points.
struct LayerStates {
  uint32_t memory, norm, seen, seen_norm, keys, values;
};

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const Infini& config, Graph& graph)
      : checkpoint_(checkpoint), config_(config), builder_(graph), parts_(checkpoint, builder_) {}

  void build() {
    for (uint32_t i = 0; i < config_.layers; ++i) states_.push_back(make_states(i));
    has_memory_ = builder_.state("has_memory", 1, 1);
    entry("continue", "prompt", false);
    entry("step", "input_ids", true);
  }

 private:
  LayerStates make_states(uint32_t index) {
    const std::string name = ".layer" + std::to_string(index);
    const uint32_t keys = config_.heads * config_.head_width;
    const auto matrix = [&](const char* which) {
      return builder_.state(which + name, keys, config_.head_width);
    };
    const auto vector = [&](const char* which) {
      return builder_.state(which + name, config_.heads, config_.head_width);
    };
    const uint32_t ring = builder_.ring("segment" + name, config_.segment);
    return {matrix("kv_mem"),
            vector("k_norm"),
            matrix("seen_kv_mem"),
            vector("seen_k_norm"),
            builder_.ring_state("segment_key" + name, ring, keys),
            builder_.ring_state("segment_value" + name, ring, keys)};
  }

  void entry(const std::string& name, const std::string& input, bool ends) {
    GraphBuilder::Entry entry;
    entry.name = name;
    entry.tokens = input;
    entry.vocabulary = config_.vocabulary;
    entry.max_segment = config_.segment;
    builder_.begin_entry(entry);
    ends_ = ends;
    angles_ = GraphBuilder::kNone;
    const uint32_t vocabulary = config_.vocabulary, width = config_.width;
    uint32_t x = builder_.embedding(name + ".embedded", builder_.tokens(),
                                    parts_.matrix("token_emb.weight", vocabulary, width));
    for (uint32_t i = 0; i < config_.layers; ++i) x = layer(i, name, x);
    if (ends) builder_.assign(has_memory_, number("one", 1.0f));
    const uint32_t last = norm(name + ".final_norm", builder_.take_rows(name + ".tail", x), "norm");
    builder_.logits(last, parts_.matrix("to_logits.weight", vocabulary, width),
                    parts_.vector("to_logits.bias", vocabulary));
  }

  uint32_t number(const std::string& name, float value) {
    const auto found = numbers_.find(name);
    if (found != numbers_.end()) return found->second;
    return numbers_[name] = row_weight(builder_, name, {value});
  }

  /// x / |x| * sqrt(width) * gamma
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    return builder_.rms_norm(name, x, parts_.vector(of + ".gamma", config_.width),
                             static_cast<float>(1e-24 / config_.width));
  }

  uint32_t layer(uint32_t index, const std::string& entry, uint32_t x) {
    const std::string name = entry + ".layer" + std::to_string(index);
    const std::string of = "layers." + std::to_string(index) + ".";
    const uint32_t width = config_.width, inner = config_.inner;
    const uint32_t attended =
        attention(index, name, norm(name + ".normed", x, of + "0.norm"), of + "0.");
    const uint32_t y =
        builder_.add(name + ".attended", x,
                     parts_.linear(name + ".attention.out", attended, of + "0.to_out",
                                   config_.heads * config_.head_width, width, false));
    const uint32_t z = norm(name + ".ff.normed", y, of + "1.norm");
    const uint32_t both = parts_.linear(name + ".ff.wide", z, of + "1.proj_in", width, 2 * inner);
    const uint32_t gate = builder_.activate(
        name + ".ff.gate", builder_.slice_columns(name + ".ff.gate_in", both, inner, inner),
        schema::Activation::Gelu);
    const uint32_t gated = builder_.multiply(
        name + ".ff.gated", gate, builder_.slice_columns(name + ".ff.x", both, 0, inner));
    return builder_.add(name + ".out", y,
                        parts_.linear(name + ".ff.out", gated, of + "1.proj_out", inner, width));
  }

  uint32_t attention(uint32_t index, const std::string& name, uint32_t z, const std::string& of) {
    const uint32_t keys = config_.heads * config_.head_width;
    const LayerStates& states = states_[index];
    const uint32_t packed =
        parts_.linear(name + ".qkv", z, of + "to_qkv", config_.width, 3 * keys, false);
    const uint32_t q = builder_.slice_columns(name + ".q", packed, 0, keys);
    const uint32_t k = builder_.slice_columns(name + ".k", packed, keys, keys);
    const uint32_t v = builder_.slice_columns(name + ".v", packed, 2 * keys, keys);

    GraphBuilder::Attention options;
    options.heads = options.kv_heads = config_.heads;
    options.scale = attention_scale(config_.head_width);
    const uint32_t angles = angles_of(name, of + "rotary_emb.freqs");
    const uint32_t turned_q = builder_.rope(name + ".q.turned", q, angles, config_.heads, true);
    const uint32_t turned_k = builder_.rope(name + ".k.turned", k, angles, config_.heads, true);
    options.sources = {{states.keys, states.values}, {turned_k, v}};
    const uint32_t local = builder_.attention(name + ".local", turned_q, options);
    schema::RingPushOptionsT push;
    push.clear = ends_;
    builder_.ring_push({turned_k, v}, {states.keys, states.values}, push);

    const uint32_t remembered =
        read(name + ".remembered", positive(name + ".q.positive", q), states);
    write(name, positive(name + ".k.positive", k), v, kept_part(name, z, of), states);
    return mix(name, local, remembered, of);
  }

  /// Each layer stores frequencies of its own, which are all the same unless they were trained.
  uint32_t angles_of(const std::string& name, const std::string& of) {
    const std::vector<float> values = checkpoint_.vector(of, config_.head_width / 2);
    if (angles_ == GraphBuilder::kNone || values != frequencies_) {
      frequencies_ = values;
      angles_ = builder_.rope_angles(name + ".angles", parts_.vector(of, config_.head_width / 2));
    }
    return angles_;
  }

  uint32_t positive(const std::string& name, uint32_t x) {
    return builder_.activate(name, x, schema::Activation::EluPlusOne);
  }

  GraphBuilder::Recurrence rule(uint32_t memory, uint32_t norm) const {
    GraphBuilder::Recurrence rule;
    rule.heads = rule.key_heads = config_.heads;
    rule.state = memory;
    rule.normaliser = schema::Normaliser::Keys;
    rule.normaliser_state = norm;
    rule.epsilon = 1e-10f;
    return rule;
  }

  uint32_t read(const std::string& name, uint32_t q, const LayerStates& states) {
    GraphBuilder::Recurrence reading = rule(states.seen, states.seen_norm);
    reading.q = q;
    return builder_.recurrence(name, reading);
  }

  /// Of a token's value: 1 - sigmoid(W z), or kNone for all of it.
  uint32_t kept_part(const std::string& name, uint32_t z, const std::string& of) {
    if (!config_.learned_update) return GraphBuilder::kNone;
    const std::string weight = of + "to_learned_delta_update_weights.0";
    if (!update_weights_.contains(weight)) {
      update_weights_[weight] =
          scaled_matrix(checkpoint_, builder_, weight, config_.width, config_.heads, -1.0);
    }
    return builder_.activate(
        name + ".kept_part",
        builder_.linear(name + ".kept_part.in", z, update_weights_[weight], GraphBuilder::kNone),
        schema::Activation::Sigmoid);
  }

  void write(const std::string& name, uint32_t k, uint32_t v, uint32_t part,
             const LayerStates& states) {
    if (config_.delta) {
      const uint32_t known = read(name + ".known", k, states);
      v = builder_.add(name + ".news", v,
                       builder_.multiply(name + ".minus_known", known, number("minus_one", -1.0f)));
    }
    GraphBuilder::Recurrence writing = rule(states.memory, states.norm);
    writing.k = k;
    writing.v = v;
    writing.factor = part;
    builder_.recurrence(name + ".write", writing);
    if (!ends_) return;
    builder_.assign(states.seen, states.memory);
    builder_.assign(states.seen_norm, states.norm);
  }

  /// local + (remembered - local) (1 - gate), or local alone when there is no memory yet.
  uint32_t mix(const std::string& name, uint32_t local, uint32_t remembered,
               const std::string& of) {
    const std::string gates = of + "fastweight_mem.head_gates";
    if (!gates_.contains(gates)) {
      std::vector<float> values = checkpoint_.vector(gates, config_.heads);
      for (float& value : values) value = static_cast<float>(1.0 / (1.0 + std::exp(double{value})));
      gates_[gates] = row_weight(builder_, gates, std::move(values));
    }
    const uint32_t part = builder_.multiply(name + ".memory_part", gates_[gates], has_memory_);
    const uint32_t difference =
        builder_.add(name + ".difference", remembered,
                     builder_.multiply(name + ".minus_local", local, number("minus_one", -1.0f)));
    return builder_.add(name + ".mixed", local,
                        builder_.multiply(name + ".memory", difference, part));
  }

  const Checkpoint& checkpoint_;
  const Infini& config_;
  GraphBuilder builder_;
  Parts parts_;
  std::vector<LayerStates> states_;
  uint32_t has_memory_ = 0;
  /// The entry point being built ends segments.
  bool ends_ = false;
  uint32_t angles_ = GraphBuilder::kNone;
  std::vector<float> frequencies_;
  std::map<std::string, uint32_t> numbers_, gates_, update_weights_;
};

Infini read(const Checkpoint& checkpoint, const ImportOptions& options) {
  Infini config;
  config.vocabulary = checkpoint.size("num_tokens", 1, kMaxSize);
  config.width = checkpoint.size("dim", 1, kMaxSize);
  config.layers = checkpoint.size("depth", 1, kMaxLayers);
  config.head_width = checkpoint.size("dim_head", 2, 1 << 14, 128);
  require_multiple(checkpoint, "dim_head", config.head_width, "2: rotary positions turn pairs,", 2);
  config.heads = checkpoint.size("heads", 1, 1 << 14, 8);
  const double times = checkpoint.number("ff_mult", 0.01, 1024, 4);
  config.inner = static_cast<uint32_t>(times * config.width * 2 / 3);
  if (config.inner == 0 || config.inner > kMaxSize) {
    checkpoint.refuse("ff_mult makes feed-forward layers of " + std::to_string(config.inner) +
                      " elements");
    config.inner = 1;
  }
  config.delta = checkpoint.flag("use_mem_delta_rule", false);
  config.learned_update = checkpoint.flag("learned_delta_update", false);
  config.segment = read_segment(checkpoint, options);
  checkpoint.ignore_keys({"attn_dropout", "ff_dropout"});
  ignore_common_keys(checkpoint);
  return config;
}

}  // namespace

void import_lucidrains_infini_transformer(const Checkpoint& checkpoint,
                                          const ImportOptions& options, Graph& graph) {
  const Infini config = read(checkpoint, options);
  Builder(checkpoint, config, graph).build();
  graph.model.task = schema::Task::Generate;
  write_metadata(checkpoint, graph,
                 {{"d_ff", config.inner},
                  {"d_model", config.width},
                  {"heads", config.heads},
                  {"layers", config.layers},
                  {"max_segment", config.segment},
                  {"vocabulary", config.vocabulary}});
}

}  // namespace oxbow::convert
