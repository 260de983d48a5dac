// RWKV-4, in Hugging Face's layout or BlinkDL's own, whose files come without a configuration: sizes that
// config.json does not tell are those of the tensors.
//
// The stream's past is five vectors a layer: the last row that entered each of its halves, and the sums of
// the weighted average with their greatest exponent.

#include <cmath>

#include "converter/blocks/parts.h"
#include "converter/blocks/recurrent.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// What the two layouts call things.
struct Names {
  const char *embedding, *blocks, *first_norm, *time, *channel, *last_norm;
  /// Suffixes of time_mix_.
  const char *key, *value, *receptance;
};
constexpr Names kHuggingFace = {"rwkv.embeddings.weight",
                                "rwkv.blocks.",
                                "pre_ln",
                                "attention.",
                                "feed_forward.",
                                "rwkv.ln_out",
                                "key",
                                "value",
                                "receptance"};
constexpr Names kBlinkDl = {"emb.weight", "blocks.", "ln0", "att.", "ffn.",
                            "ln_out",     "k",       "v",   "r"};

struct Rwkv {
  const Names* names;
  uint32_t vocabulary, layers, width, attention, inner, rescale_every;
  float epsilon;
  bool tied;
};

uint32_t count_layers(const Checkpoint& checkpoint, const Names& names) {
  uint32_t layers = 0;
  while (layers < kMaxLayers &&
         checkpoint.has_tensor(names.blocks + std::to_string(layers) + ".ln1.weight")) {
    ++layers;
  }
  return layers;
}

Rwkv read(const Checkpoint& checkpoint) {
  Rwkv config;
  const bool own = checkpoint.has_tensor(kBlinkDl.embedding);
  config.names = own ? &kBlinkDl : &kHuggingFace;
  const Names& names = *config.names;
  const std::string first = std::string(names.blocks) + "0.";
  const auto size = [&](const char* key, uint32_t most, auto stored) {
    return checkpoint.has_value(key) || !own ? checkpoint.size(key, 1, most) : stored();
  };
  config.vocabulary =
      size("vocab_size", kMaxSize, [&] { return stored_rows(checkpoint, names.embedding); });
  config.layers =
      size("num_hidden_layers", kMaxLayers, [&] { return count_layers(checkpoint, names); });
  const std::string receptance = first + names.channel + "receptance.weight";
  config.width = size("hidden_size", kMaxSize, [&] { return stored_rows(checkpoint, receptance); });
  const auto stored_or = [&](const std::string& tensor, uint32_t fallback) {
    return own ? stored_rows(checkpoint, tensor) : fallback;
  };
  config.attention = checkpoint.size("attention_hidden_size", 1, kMaxSize,
                                     stored_or(first + names.time + "key.weight", config.width));
  config.inner = checkpoint.size("intermediate_size", 1, kMaxSize,
                                 stored_or(first + names.channel + "key.weight", 4 * config.width));
  if (config.layers == 0) throw InputError("tensor " + first + "ln1.weight is missing");
  config.rescale_every = checkpoint.size("rescale_every", 0, kMaxLayers, own ? 0 : 6);
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_epsilon", 1e-12, 1, 1e-5));
  config.tied = checkpoint.flag("tie_word_embeddings", false);
  // How long the texts were it was trained with: its past has no length.
  checkpoint.ignore_keys({"context_length"});
  require_flag(checkpoint, "is_encoder_decoder", false);
  require_flag(checkpoint, "add_cross_attention", false);
  ignore_common_keys(checkpoint);
  return config;
}

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const Rwkv& config, Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        names_(*config.names),
        graph_(graph),
        builder_(graph),
        parts_(checkpoint, builder_) {}

  void build(const ImportOptions& options) {
    const uint32_t segment =
        begin_stream(checkpoint_, options, config_.vocabulary, graph_, builder_);
    const uint32_t words = parts_.matrix(names_.embedding, config_.vocabulary, config_.width);
    uint32_t x = builder_.embedding("embedded", builder_.tokens(), words);
    x = norm("entered", x, std::string(names_.blocks) + "0." + names_.first_norm, 0);
    for (uint32_t i = 0; i < config_.layers; ++i) {
      builder_.debug_output(x, "hidden_states." + std::to_string(i));
      x = layer(i, x);
    }
    const uint32_t last =
        norm("last", builder_.take_rows("tail", x), names_.last_norm, config_.layers);
    builder_.debug_output(last, "hidden_states." + std::to_string(config_.layers));
    builder_.logits(last,
                    head_matrix(checkpoint_, parts_, config_.tied, words, "head.weight",
                                config_.vocabulary, config_.width),
                    GraphBuilder::kNone);
    write_metadata(checkpoint_, graph_,
                   {{"d_ff", config_.inner},
                    {"d_model", config_.width},
                    {"layers", config_.layers},
                    {"max_segment", segment},
                    {"vocabulary", config_.vocabulary}});
    graph_.model.metadata->transposed_states = {"state.att_shift", "state.ffn_shift",
                                                "state.att_num", "state.att_den", "state.att_max"};
    read_generation(checkpoint_, config_.vocabulary, graph_);
  }

 private:
  /// The original halves the stream after every `rescale_every` layers, to keep it within float16, and
  /// divides what is added to it. A norm sees that only in its epsilon: that of x / 2^k is that of x with
  /// 4^k epsilon.
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of, uint32_t layer) {
    const uint32_t halvings = config_.rescale_every == 0 ? 0 : layer / config_.rescale_every;
    // layer_norm_epsilon is not that of the norm behind all layers.
    const float epsilon = layer == config_.layers ? 1e-5f : config_.epsilon;
    return parts_.layer_norm(name, x, of, config_.width,
                             std::ldexp(epsilon, static_cast<int>(2 * halvings)));
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string of = names_.blocks + std::to_string(index) + ".";
    const uint32_t y = builder_.add(
        name + ".timed", x,
        time_mixing(index, name + ".time", norm(name + ".time.normed", x, of + "ln1", index),
                    of + names_.time));
    return builder_.add(
        name + ".out", y,
        channel_mixing(index, name + ".channel",
                       norm(name + ".channel.normed", y, of + "ln2", index), of + names_.channel));
  }

  /// The last row of the stream before each run.
  uint32_t last_row(const std::string& state, uint32_t index) {
    const std::string name = "state." + state + ".layer" + std::to_string(index);
    return builder_.ring_state(name, builder_.ring(name, 1), config_.width);
  }

  /// mix * x + (1 - mix) * the row before: a filter of two taps for each channel.
  uint32_t mixed(const std::string& name, uint32_t x, uint32_t last, const std::string& mix) {
    const uint32_t width = config_.width;
    std::vector<float> taps;
    for (const float own : checkpoint_.tensor(mix, {1, 1, width})) {
      taps.insert(taps.end(), {1.0f - own, own});
    }
    schema::ConvolutionOptionsT options;
    options.heads = width;
    options.taps = 2;
    options.left = 1;
    return builder_.convolution(name, x, builder_.weight(mix, width, 2, std::move(taps)), last,
                                options);
  }

  uint32_t receptance(const std::string& name, uint32_t x, uint32_t last, const std::string& of,
                      uint32_t out) {
    const uint32_t r = parts_.linear(
        name + ".r", mixed(name + ".r.in", x, last, of + "time_mix_" + names_.receptance),
        of + "receptance", config_.width, out, false);
    return builder_.activate(name + ".gate", r, schema::Activation::Sigmoid);
  }

  uint32_t time_mixing(uint32_t index, const std::string& name, uint32_t x, const std::string& of) {
    const uint32_t width = config_.attention;
    const uint32_t last = last_row("att_shift", index);
    const auto projected = [&](const char* part, const char* mix, const char* matrix) {
      return parts_.linear(name + part, mixed(name + part + ".in", x, last, of + "time_mix_" + mix),
                           of + matrix, config_.width, width, false);
    };
    const uint32_t k = projected(".k", names_.key, "key");
    const uint32_t v = projected(".v", names_.value, "value");
    const uint32_t gate = receptance(name, x, last, of, width);
    builder_.ring_push({x}, {last});

    std::vector<float> decay = checkpoint_.vector(of + "time_decay", width);
    for (float& value : decay) value = -std::exp(value);
    const std::string layer = ".layer" + std::to_string(index);
    const uint32_t average =
        builder_.scan(name + ".average", schema::ScanOptionsT(),
                      {k, v, builder_.weight(of + "time_decay", 1, width, std::move(decay)),
                       parts_.vector(of + "time_first", width)},
                      {builder_.state("state.att_num" + layer, 1, width),
                       builder_.state("state.att_den" + layer, 1, width),
                       builder_.constant_state("state.att_max" + layer, 1, width, -1e30f)})[0];
    return parts_.linear(name + ".out", builder_.multiply(name + ".gated", average, gate),
                         of + "output", width, config_.width, false);
  }

  uint32_t channel_mixing(uint32_t index, const std::string& name, uint32_t x,
                          const std::string& of) {
    const uint32_t width = config_.width;
    const uint32_t last = last_row("ffn_shift", index);
    const uint32_t k = builder_.activate(
        name + ".k",
        parts_.linear(name + ".k.linear",
                      mixed(name + ".k.in", x, last, of + "time_mix_" + names_.key), of + "key",
                      width, config_.inner, false),
        schema::Activation::ReluSquared);
    const uint32_t gate = receptance(name, x, last, of, width);
    builder_.ring_push({x}, {last});
    return builder_.multiply(
        name + ".gated", parts_.linear(name + ".v", k, of + "value", config_.inner, width, false),
        gate);
  }

  const Checkpoint& checkpoint_;
  const Rwkv& config_;
  const Names& names_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
};

}  // namespace

void import_rwkv(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Rwkv config = read(checkpoint);
  Builder(checkpoint, config, graph).build(options);
}

}  // namespace oxbow::convert
