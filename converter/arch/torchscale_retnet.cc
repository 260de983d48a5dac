// RetNet as in microsoft/torchscale (Sun et al. 2023): retention with one decay for each head.
//
//   parallel   a text as a whole, from the start
//   chunkwise  the same in chunks of recurrent_chunk_size
//   step       a stream, whose state is kept divided by the root of the sum of its decays
//
// The three give the same but for how much the epsilon of the norm behind the retention weighs.

#include <cmath>
#include <limits>

#include "converter/blocks/recurrent.h"
#include "converter/blocks/torchscale.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

struct RetNet {
  uint32_t vocabulary, width, value_width, heads, inner, layers;
  float epsilon;
  schema::Activation activation;
  TorchscaleStream stream;
  uint32_t chunk;

  uint32_t key_width() const { return width / heads; }
};

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const RetNet& config,
          Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        graph_(graph),
        builder_(graph),
        parts_(checkpoint, builder_) {
    frequencies_ = row_weight(builder_, "rope.frequencies", read_frequencies());
    decay_ = row_weight(builder_, "decay", read_decays());
    for (uint32_t i = 0; i < config.layers; ++i) states_.push_back(make_states(i));
    begin_text("parallel", options, 0);
    build();
    begin_text("chunkwise", options, config.chunk);
    build();
    form_ = {"", false, 0};
    max_segment_ = begin_stream(checkpoint, options, config.vocabulary, graph, builder_);
    build();
    describe();
  }

 private:
  /// What the entry point being built computes.
  struct Form {
    /// In front of names.
    std::string name;
    bool whole_text;
    uint32_t chunk;
  };
  struct States {
    uint32_t key_value, scale;
  };

  States make_states(uint32_t index) {
    const std::string name = "state.layer" + std::to_string(index);
    transposed_.push_back(name + ".prev_key_value");
    return {builder_.state(name + ".prev_key_value", config_.width,
                           config_.value_width / config_.heads),
            builder_.state(name + ".scale", 1, config_.heads)};
  }

  void begin_text(const std::string& name, const ImportOptions& options, uint32_t chunk) {
    form_ = {name + ".", true, chunk};
    GraphBuilder::Entry entry;
    entry.name = name;
    entry.vocabulary = config_.vocabulary;
    entry.max_segment = read_segment(checkpoint_, options);
    entry.starts = true;
    builder_.begin_entry(entry);
  }

  void build() {
    angles_ = builder_.rope_angles(form_.name + "rope.angles", frequencies_);
    const uint32_t vocabulary = config_.vocabulary, width = config_.width;
    const TorchscaleStream& stream = config_.stream;
    const uint32_t words = parts_.matrix("embed_tokens.weight", vocabulary, width);
    uint32_t x = builder_.embedding(form_.name + "embedded", builder_.tokens(), words,
                                    stream.embedding_scale);
    if (stream.embedding_norm) x = norm(form_.name + "embedded.normed", x, "layernorm_embedding");
    keep(x, 0);
    for (uint32_t i = 0; i < config_.layers; ++i) {
      x = layer(i, x);
      keep(x, i + 1);
    }
    uint32_t last = builder_.take_rows(form_.name + "tail", x);
    if (stream.pre_norm) last = norm(form_.name + "final_norm", last, "layer_norm");
    builder_.logits(last,
                    head_matrix(checkpoint_, parts_, stream.tied, words, "output_projection.weight",
                                vocabulary, width),
                    GraphBuilder::kNone);
  }

  /// References keep what the parallel form gives.
  void keep(uint32_t x, uint32_t index) {
    if (form_.name == "parallel.") {
      builder_.debug_output(x, "inner_states." + std::to_string(index));
    }
  }

  void describe() {
    write_metadata(checkpoint_, graph_,
                   {{"d_ff", config_.inner},
                    {"d_model", config_.width},
                    {"d_value", config_.value_width},
                    {"heads", config_.heads},
                    {"layers", config_.layers},
                    {"max_segment", max_segment_},
                    {"vocabulary", config_.vocabulary}});
    graph_.model.metadata->transposed_states = transposed_;
    read_generation(checkpoint_, config_.vocabulary, graph_);
  }
  /// Stored twice side by side, for both elements of a pair.
  std::vector<float> read_frequencies() {
    const std::string name = "retnet_rel_pos.angle";
    const uint32_t pairs = config_.key_width() / 2;
    if (!checkpoint_.has_tensor(name)) return linspace_frequencies(10000.0, pairs);
    const std::vector<float> twice = checkpoint_.vector(name, config_.key_width());
    std::vector<float> out;
    for (size_t i = 0; i < twice.size(); i += 2) {
      if (twice[i] != twice[i + 1]) {
        throw InputError("tensor " + name + " turns the elements of pair " + std::to_string(i / 2) +
                         " by different angles");
      }
      out.push_back(twice[i]);
    }
    return out;
  }

  /// Stored as logarithms.
  std::vector<float> read_decays() {
    const std::string name = "retnet_rel_pos.decay";
    std::vector<float> out;
    for (uint32_t h = 0; h < config_.heads; ++h) {
      out.push_back(static_cast<float>(1.0 - std::exp2(-5.0 - h)));
    }
    if (!checkpoint_.has_tensor(name)) return out;
    const std::vector<float> logs = checkpoint_.vector(name, config_.heads);
    for (uint32_t h = 0; h < config_.heads; ++h) {
      out[h] = static_cast<float>(std::exp(double{logs[h]}));
      if (!(out[h] > 0 && out[h] <= 1)) {
        throw InputError("tensor " + name + " has the value " + std::to_string(logs[h]) +
                         ", expected the logarithm of a decay, at most 0");
      }
    }
    return out;
  }

  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    return parts_.rms_norm(name, x, of, config_.width, config_.epsilon);
  }
  uint32_t linear(const std::string& name, uint32_t x, const std::string& of, uint32_t in,
                  uint32_t out) {
    return parts_.linear(name, x, of, in, out, false);
  }

  template <typename Function>
  uint32_t residual(const std::string& name, uint32_t x, const std::string& norm_of,
                    const Function& function) {
    const auto norm_to = [&](const std::string& to, uint32_t of) { return norm(to, of, norm_of); };
    return torchscale_residual(builder_, config_.stream, name, x, norm_to, function);
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = form_.name + "layer" + std::to_string(index);
    const std::string of = "layers." + std::to_string(index) + ".";
    x = residual(name + ".retention", x, of + "retention_layer_norm",
                 [&](uint32_t z) { return retention(index, name, z, of + "retention."); });
    return residual(name + ".ff", x, of + "final_layer_norm",
                    [&](uint32_t z) { return feed_forward(name + ".ff", z, of + "ffn."); });
  }

  uint32_t retention(uint32_t index, const std::string& name, uint32_t z, const std::string& of) {
    const uint32_t width = config_.width, values = config_.value_width, heads = config_.heads;
    GraphBuilder::Recurrence rule;
    rule.heads = rule.key_heads = heads;
    rule.q = builder_.rope(name + ".q", linear(name + ".q_in", z, of + "q_proj", width, width),
                           angles_, heads, true);
    rule.k = builder_.rope(
        name + ".k",
        builder_.linear(name + ".k_in", z, key_matrix(of + "k_proj"), GraphBuilder::kNone), angles_,
        heads, true);
    rule.v = linear(name + ".v", z, of + "v_proj", width, values);
    rule.decay = decay_;
    rule.state = states_[index].key_value;
    rule.normaliser = schema::Normaliser::Decays;
    rule.normaliser_state = states_[index].scale;
    const uint32_t normed =
        builder_.rms_norm(name + ".retained.normed", retain(name + ".retained", rule),
                          GraphBuilder::kNone, config_.epsilon, heads);
    const uint32_t gate = builder_.activate(
        name + ".gate", linear(name + ".gate_in", z, of + "g_proj", width, values),
        schema::Activation::Silu);
    return linear(name + ".out", builder_.multiply(name + ".gated", normed, gate), of + "out_proj",
                  values, width);
  }

  /// Keys are divided by the root of their width.
  uint32_t key_matrix(const std::string& of) {
    const auto [found, is_new] = key_matrices_.try_emplace(of, 0);
    if (is_new) {
      found->second = scaled_matrix(checkpoint_, builder_, of, config_.width, config_.width,
                                    1.0 / std::sqrt(static_cast<double>(config_.key_width())));
    }
    return found->second;
  }

  uint32_t retain(const std::string& name, const GraphBuilder::Recurrence& rule) {
    if (!form_.whole_text) return builder_.recurrence(name, rule);
    schema::RetentionOptionsT options;
    options.heads = rule.heads;
    options.chunk = form_.chunk;
    // In chunks the original sets no limit.
    if (form_.chunk != 0) options.limit = std::numeric_limits<float>::max();
    return builder_.retention(name, rule.q, rule.k, rule.v, rule.decay, options);
  }

  uint32_t feed_forward(const std::string& name, uint32_t z, const std::string& of) {
    const uint32_t width = config_.width, inner = config_.inner;
    const uint32_t active = builder_.activate(
        name + ".active", linear(name + ".wide", z, of + "fc1", width, inner), config_.activation);
    const uint32_t gate = linear(name + ".gate", z, of + "gate", width, inner);
    return linear(name + ".out", builder_.multiply(name + ".gated", active, gate), of + "fc2",
                  inner, width);
  }

  const Checkpoint& checkpoint_;
  const RetNet& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  uint32_t max_segment_ = 0;
  Form form_ = {};
  std::vector<States> states_;
  std::map<std::string, uint32_t> key_matrices_;
  uint32_t frequencies_ = 0, angles_ = 0, decay_ = 0;
  std::vector<std::string> transposed_;
};

RetNet read(const Checkpoint& checkpoint) {
  RetNet config;
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.width = checkpoint.size("decoder_embed_dim", 2, kMaxSize, 768);
  config.value_width = checkpoint.size("decoder_value_embed_dim", 1, kMaxSize, 1280);
  config.heads = checkpoint.size("decoder_retention_heads", 1, config.width, 3);
  require_multiple(checkpoint, "decoder_embed_dim", config.width, "2 * decoder_retention_heads",
                   2 * config.heads);
  require_multiple(checkpoint, "decoder_value_embed_dim", config.value_width,
                   "decoder_retention_heads", config.heads);
  config.inner = checkpoint.size("decoder_ffn_embed_dim", 1, kMaxSize, 1280);
  config.layers = checkpoint.size("decoder_layers", 1, kMaxLayers, 12);
  config.epsilon = static_cast<float>(checkpoint.number("layernorm_eps", 1e-12, 1, 1e-6));
  config.activation = read_activation(checkpoint, "activation_fn", "gelu");
  config.stream = read_torchscale_stream(checkpoint, config.width, config.layers);
  config.chunk = checkpoint.size("recurrent_chunk_size", 1, kMaxSize, 512);
  // Which form is asked for is the caller's choice of an entry point.
  checkpoint.ignore_keys({"chunkwise_recurrent"});
  read_torchscale_keys(checkpoint);
  ignore_common_keys(checkpoint);
  return config;
}

}  // namespace

void import_torchscale_retnet(const Checkpoint& checkpoint, const ImportOptions& options,
                              Graph& graph) {
  const RetNet config = read(checkpoint);
  Builder(checkpoint, options, config, graph);
}

}  // namespace oxbow::convert
