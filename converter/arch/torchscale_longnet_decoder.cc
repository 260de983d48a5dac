// LongNet's decoder as in microsoft/torchscale (Ding et al. 2023). Each attention is several, mixed by their
// log-sum-exp: of each pair of a segment length and a dilation one, in which a head sees every so many tokens of its
// segment. Of a stream the keys of the longest segment are kept, and segments are counted from its start.

#include <algorithm>

#include "converter/blocks/parts.h"
#include "converter/blocks/torchscale.h"
#include "host/errors.h"
#include "ops/mix_attention/mix_attention.h"

namespace oxbow::convert {
namespace {

struct LongNet {
  uint32_t vocabulary, width, heads, inner, layers;
  float epsilon;
  schema::Activation activation;
  TorchscaleStream stream;
  std::vector<uint32_t> segments, dilations;

  uint32_t longest() const { return *std::max_element(segments.begin(), segments.end()); }
};

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const LongNet& config,
          Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        graph_(graph),
        builder_(graph),
        parts_(checkpoint, builder_) {
    begin(options);
    const uint32_t vocabulary = config_.vocabulary, width = config_.width;
    const uint32_t words = parts_.matrix("embed_tokens.weight", vocabulary, width);
    const TorchscaleStream& stream = config_.stream;
    uint32_t x = builder_.embedding("embedded", builder_.tokens(), words, stream.embedding_scale);
    if (stream.embedding_norm) x = norm("embedded.normed", x, "layernorm_embedding", width);
    builder_.debug_output(x, "inner_states.0");
    for (uint32_t i = 0; i < config_.layers; ++i) {
      x = layer(i, x);
      builder_.debug_output(x, "inner_states." + std::to_string(i + 1));
    }
    uint32_t last = builder_.take_rows("tail", x);
    if (stream.pre_norm) last = norm("final_norm", last, "layer_norm", width);
    if (stream.tied) checkpoint_.ignore_tensor("output_projection.weight");
    builder_.logits(
        last, stream.tied ? words : parts_.matrix("output_projection.weight", vocabulary, width),
        GraphBuilder::kNone);
    describe();
  }

 private:
  void begin(const ImportOptions& options) {
    graph_.keeps_context = true;
    if (options.sinks != 0) throw UsageError("--sinks: segments have none");
    const uint32_t longest = config_.longest();
    const bool ends = options.context != 0 && options.context < longest;
    if (options.context > longest) {
      throw UsageError("--context " + std::to_string(options.context) +
                       " is more than the longest segment, " + std::to_string(longest));
    }
    if (ends && options.ring) {
      throw UsageError("--ring with a --context below the longest segment, " +
                       std::to_string(longest));
    }
    // A query's own row is not in the ring yet.
    kept_ = std::max(ends ? options.context : longest - 1, 1u);
    max_segment_ = read_segment(checkpoint_, options);
    if (ends) max_segment_ = std::min(max_segment_, options.context);
    GraphBuilder::Entry entry;
    entry.vocabulary = config_.vocabulary;
    entry.max_segment = max_segment_;
    entry.capacity = ends ? options.context : 0;
    entry.any_pieces = true;
    builder_.begin_entry(entry);
    graph_.model.task = schema::Task::Generate;
  }

  void describe() {
    write_metadata(checkpoint_, graph_,
                   {{"d_ff", config_.inner},
                    {"d_model", config_.width},
                    {"heads", config_.heads},
                    {"layers", config_.layers},
                    {"longest_segment", config_.longest()},
                    {"max_segment", max_segment_},
                    {"vocabulary", config_.vocabulary}});
    read_generation(checkpoint_, config_.vocabulary, graph_);
  }

  uint32_t norm(const std::string& name, uint32_t x, const std::string& of, uint32_t width) {
    return parts_.layer_norm(name, x, of, width, config_.epsilon);
  }

  template <typename Function>
  uint32_t residual(const std::string& name, uint32_t x, const std::string& norm_of,
                    const Function& function) {
    const auto norm_to = [&](const std::string& to, uint32_t of) {
      return norm(to, of, norm_of, config_.width);
    };
    return torchscale_residual(builder_, config_.stream, name, x, norm_to, function);
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string of = "layers." + std::to_string(index) + ".";
    x = residual(name + ".attention", x, of + "self_attn_layer_norm", [&](uint32_t z) {
      return attention(index, name + ".attention", z, of + "self_attn.");
    });
    return residual(name + ".ff", x, of + "final_layer_norm",
                    [&](uint32_t z) { return feed_forward(name + ".ff", z, of + "ffn."); });
  }

  uint32_t attention(uint32_t index, const std::string& name, uint32_t z, const std::string& of) {
    const uint32_t width = config_.width;
    const uint32_t q = parts_.linear(name + ".q", z, of + "q_proj", width, width);
    const uint32_t k = parts_.linear(name + ".k", z, of + "k_proj", width, width);
    const uint32_t v = parts_.linear(name + ".v", z, of + "v_proj", width, width);
    const std::string number = std::to_string(index);
    const uint32_t ring = builder_.ring("cache.layer" + number, kept_);
    const uint32_t keys = builder_.ring_state("key.layer" + number, ring, width);
    const uint32_t values = builder_.ring_state("value.layer" + number, ring, width);
    GraphBuilder::Attention options;
    options.heads = options.kv_heads = config_.heads;
    options.scale = attention_scale(width / config_.heads);
    options.sources = {{keys, values}, {k, v}};
    std::vector<GraphBuilder::Mixed> parts;
    for (size_t i = 0; i < config_.segments.size(); ++i) {
      options.pattern.kind = schema::PatternKind::Segments;
      options.pattern.length = config_.segments[i];
      options.pattern.dilation = {config_.dilations[i]};
      GraphBuilder::Mixed part;
      part.x =
          builder_.attention(name + ".segments" + std::to_string(i), q, options, &part.log_sums);
      parts.push_back(part);
    }
    uint32_t y = builder_.mix_attention(name + ".mixed", parts);
    builder_.ring_push({k, v}, {keys, values});
    if (config_.stream.inner_norms)
      y = norm(name + ".mixed.normed", y, of + "inner_attn_ln", width);
    return parts_.linear(name + ".out", y, of + "out_proj", width, width);
  }

  uint32_t feed_forward(const std::string& name, uint32_t z, const std::string& of) {
    const uint32_t width = config_.width, inner = config_.inner;
    uint32_t y = builder_.activate(name + ".active",
                                   parts_.linear(name + ".wide", z, of + "fc1", width, inner),
                                   config_.activation);
    if (config_.stream.inner_norms)
      y = norm(name + ".active.normed", y, of + "ffn_layernorm", inner);
    return parts_.linear(name + ".out", y, of + "fc2", inner, width);
  }

  const Checkpoint& checkpoint_;
  const LongNet& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  uint32_t kept_ = 0, max_segment_ = 0;
};

void read_segments(const Checkpoint& checkpoint, LongNet& config) {
  config.segments = checkpoint.sizes("segment_length", 1, kMaxSize);
  config.dilations = checkpoint.sizes("dilated_ratio", 1, kMaxSize);
  if (config.segments.empty() || config.segments.size() != config.dilations.size() ||
      config.segments.size() > kMaxMixed) {
    checkpoint.refuse("segment_length has " + std::to_string(config.segments.size()) +
                      " values and dilated_ratio " + std::to_string(config.dilations.size()) +
                      ", expected as many, from 1 to " + std::to_string(kMaxMixed));
    config.segments = config.dilations = {1};
  }
  for (size_t i = 0; i < config.segments.size(); ++i) {
    // The original shifts what it computes for the segments behind the first by what is missing.
    require_multiple(checkpoint, "segment_length", config.segments[i], "dilated_ratio",
                     config.dilations[i]);
  }
}

LongNet read(const Checkpoint& checkpoint) {
  LongNet config;
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.width = checkpoint.size("decoder_embed_dim", 1, kMaxSize, 768);
  config.heads = checkpoint.size("decoder_attention_heads", 1, config.width, 12);
  require_multiple(checkpoint, "decoder_embed_dim", config.width, "decoder_attention_heads",
                   config.heads);
  config.inner = checkpoint.size("decoder_ffn_embed_dim", 1, kMaxSize, 3072);
  config.layers = checkpoint.size("decoder_layers", 1, kMaxLayers, 12);
  config.epsilon = static_cast<float>(checkpoint.number("layernorm_eps", 1e-12, 1, 1e-5));
  config.activation = read_activation(checkpoint, "activation_fn", "gelu");
  config.stream = read_torchscale_stream(checkpoint, config.width, config.layers);
  read_segments(checkpoint, config);
  for (const char* absent : {"seq_parallel", "is_encoder_decoder"}) {
    require_flag(checkpoint, absent, false);
  }
  checkpoint.ignore_keys({"bert_init", "flash_attention"});
  read_torchscale_keys(checkpoint);
  ignore_common_keys(checkpoint);
  return config;
}

}  // namespace

void import_torchscale_longnet_decoder(const Checkpoint& checkpoint, const ImportOptions& options,
                                       Graph& graph) {
  const LongNet config = read(checkpoint);
  Builder(checkpoint, options, config, graph);
}

}  // namespace oxbow::convert
