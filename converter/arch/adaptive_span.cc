// Adaptive attention span (Sukhbaatar et al. 2019) as its authors wrote it (facebookresearch/adaptive-span):
// every head has learnt how far back it looks. With persistent vectors (all-attention, 2019) in place of
// feed-forward layers, and words in clusters (adapt_io).

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "converter/blocks/adaptive_softmax.h"
#include "converter/blocks/parts.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

struct AdaptiveSpan {
  uint32_t vocabulary = 0;
  uint32_t width = 0;
  uint32_t heads = 0;
  uint32_t layers = 0;
  /// How far back tokens see, themselves not counted, and how many rows the memories have.
  uint32_t span = 0;
  uint32_t inner_width = 0;
  /// Spans are learnt; they end with a ramp of so many tokens.
  bool adaptive = false;
  uint32_t ramp = 0;
  /// Caches are cut to the longest span of their layer.
  bool trims_caches = false;
  uint32_t persistent = 0;
  uint32_t max_segment = 0;
  /// Without clusters: words are one table, and a layer gives their scores.
  AdaptiveWords words;

  uint32_t head_width() const { return width / heads; }
};

/// Words in clusters have tables of their own, each narrower than the one before.
AdaptiveWords read_words(const Checkpoint& checkpoint, uint32_t vocabulary, uint32_t width) {
  const std::string of = "adapt_io_params.";
  AdaptiveWords words;
  if (!checkpoint.flag(of + "adapt_io_enabled", false)) {
    checkpoint.ignore_keys({of + "adapt_io_cutoffs", of + "adapt_io_divval", of + "adapt_io_tied"});
    return words;
  }
  words.vocabulary = vocabulary;
  words.width = words.embedding_width = width;
  words.cutoffs = checkpoint.sizes(of + "adapt_io_cutoffs", 1, kMaxSize);
  words.division = checkpoint.size(of + "adapt_io_divval", 2, kMaxSize);
  check_adaptive_words(checkpoint, &words, of + "adapt_io_cutoffs", of + "adapt_io_divval");
  words.tied_words = checkpoint.flag(of + "adapt_io_tied", false);
  words.tied_projections.assign(words.clusters(), words.tied_words);
  // Cluster i is read from the i-th column from the end.
  words.reversed_clusters = true;
  words.embedding_prefix = "in_emb.";
  words.head_prefix = "out_emb.";
  words.cluster_weight = "cluster_proj.weight";
  words.cluster_bias = "cluster_proj.bias";
  return words;
}

AdaptiveSpan read(const Checkpoint& checkpoint, const ImportOptions& options) {
  AdaptiveSpan config;
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.width = checkpoint.size("hidden_size", 1, kMaxSize);
  config.heads = checkpoint.size("nb_heads", 1, kMaxSize);
  config.layers = checkpoint.size("nb_layers", 1, kMaxLayers);
  config.span = checkpoint.size("attn_span", 1, kMaxSize);
  config.inner_width = checkpoint.size("inner_hidden_size", 1, kMaxSize);
  require_multiple(checkpoint, "hidden_size", config.width, "nb_heads", config.heads);
  config.words = read_words(checkpoint, config.vocabulary, config.width);
  config.adaptive = checkpoint.flag("adapt_span_params.adapt_span_enabled", false);
  if (config.adaptive) {
    config.ramp = checkpoint.size("adapt_span_params.adapt_span_ramp", 1, kMaxSize);
    config.trims_caches = checkpoint.flag("adapt_span_params.adapt_span_cache", false);
  }
  config.persistent = checkpoint.size("pers_mem_params.pers_mem_size", 0, kMaxSize, 0);
  config.max_segment = read_segment(checkpoint, options);
  ignore_common_keys(checkpoint);
  // Of training.
  checkpoint.ignore_keys({"emb_dropout", "dropout", "adapt_span_params.adapt_span_ramp",
                          "adapt_span_params.adapt_span_loss", "adapt_span_params.adapt_span_init",
                          "adapt_span_params.adapt_span_cache"});
  return config;
}

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const AdaptiveSpan& config, Graph& graph)
      : checkpoint_(checkpoint), config_(config), builder_(graph), parts_(checkpoint, builder_) {
    GraphBuilder::Entry entry;
    entry.vocabulary = config.vocabulary;
    entry.max_segment = config.max_segment;
    builder_.begin_entry(entry);
  }

  void build() {
    const AdaptiveSpan& c = config_;
    const bool clustered = !c.words.cutoffs.empty();
    uint32_t x = clustered
                     ? embed_adaptive("hidden_states.0", c.words,
                                      static_cast<float>(std::sqrt(static_cast<double>(c.width))),
                                      builder_, parts_)
                     : builder_.embedding("hidden_states.0", builder_.tokens(),
                                          parts_.matrix("in_emb.weight", c.vocabulary, c.width));
    builder_.debug_output(x);
    for (uint32_t i = 0; i < c.layers; ++i) x = layer(i, x);
    const uint32_t tail = builder_.take_rows("tail", x);
    if (clustered) return adaptive_head(c.words, tail, checkpoint_, builder_, parts_);
    const uint32_t scores = parts_.linear("scores", tail, "out_emb", c.width, c.vocabulary);
    builder_.adaptive_logits(scores, {});
  }

 private:
  /// Position vectors by distance, alike in all heads and layers: key_pe's column `span - d` for distance d.
  /// A last row of zeros is for the persistent vectors, which have no position and lie behind the memory
  /// of `memory` rows.
  GraphBuilder::Relative positions(uint32_t memory) {
    const auto found = positions_.find(memory);
    if (found != positions_.end()) return found->second;
    const uint32_t dh = config_.head_width(), span = config_.span;
    const std::vector<float> key_pe = checkpoint_.tensor("key_pe", {1, dh, span});
    const uint32_t rows = memory + (config_.persistent == 0 ? 1 : 2);
    std::vector<float> by_distance(size_t{rows} * dh);
    for (size_t d = 1; d <= memory; ++d) {
      for (size_t i = 0; i < dh; ++i) by_distance[d * dh + i] = key_pe[i * span + span - d];
    }
    const std::string name = "positions" + std::to_string(memory);
    return positions_[memory] = {builder_.weight(name, rows, config_.width,
                                                 repeated_columns(by_distance, dh, config_.heads)),
                                 builder_.weight(name + ".bias", rows, config_.heads,
                                                 std::vector<float>(size_t{rows} * config_.heads)),
                                 builder_.weight(name + ".query_bias", 1, config_.width,
                                                 std::vector<float>(config_.width))};
  }

  /// How many of the farthest tokens no head of a layer sees, and how many rows its memory has. The authors trim by
  /// multiples of 64, and leave that much room for spans to grow in training.
  struct Reach {
    uint32_t trimmed = 0, memory = 0;
  };
  Reach reach(const std::string& mask) const {
    constexpr uint32_t kStep = 64;
    const uint32_t span = config_.span;
    if (!config_.adaptive) return {0, span};
    double most = 0;
    for (const float value : checkpoint_.tensor(mask + "current_val", {config_.heads, 1, 1})) {
      if (!std::isfinite(value)) throw InputError("tensor " + mask + "current_val is not finite");
      most = std::max(most, double{value});
    }
    const double seen = std::min(std::ceil(most * span) + config_.ramp, static_cast<double>(span));
    const uint32_t unseen = std::min(span - 1, span - static_cast<uint32_t>(seen));
    const uint32_t trimmed = unseen / kStep * kStep;
    return {trimmed, config_.trims_caches ? std::min(span, span - trimmed + kStep) : span};
  }

  /// Keys and values that are the same for every token. Stored for each head by itself, and smaller than they
  /// are used, which the authors found easier to train.
  GraphBuilder::Source persistent(const std::string& name, const std::string& prefix) {
    const uint32_t dh = config_.head_width(), heads = config_.heads, n = config_.persistent;
    const std::vector<float> keys = checkpoint_.tensor(prefix + "key", {heads, dh, n});
    const std::vector<float> values = checkpoint_.tensor(prefix + "val", {heads, n, dh});
    const auto of_keys = static_cast<float>(std::sqrt(static_cast<double>(dh)));
    const auto of_values = static_cast<float>(std::sqrt(static_cast<double>(n)));
    std::vector<float> k(size_t{n} * config_.width), v(k.size());
    for (size_t row = 0; row < n; ++row) {
      for (size_t h = 0; h < heads; ++h) {
        for (size_t i = 0; i < dh; ++i) {
          const size_t to = row * config_.width + h * dh + i;
          k[to] = keys[(h * dh + i) * n + row] * of_keys;
          v[to] = values[(h * n + row) * dh + i] * of_values;
        }
      }
    }
    return {builder_.weight(name + ".persistent.k", n, config_.width, std::move(k)),
            builder_.weight(name + ".persistent.v", n, config_.width, std::move(v))};
  }

  /// The mask of distance d is clamp((1 - d + val * span) / ramp + 1, 0, 1).
  GraphBuilder::AdaptiveSpan spans(const std::string& name, const std::string& prefix) {
    std::vector<float> spans = checkpoint_.tensor(prefix + "current_val", {config_.heads, 1, 1});
    for (float& span : spans) span = span * static_cast<float>(config_.span) + 1.0f;
    checkpoint_.ignore_tensor(prefix + "mask_template");
    return {builder_.weight(name + ".spans", 1, config_.heads, std::move(spans)),
            static_cast<float>(config_.ramp), config_.persistent};
  }

  uint32_t attention(const std::string& name, const std::string& prefix, uint32_t x) {
    const uint32_t width = config_.width;
    const uint32_t q = parts_.linear(name + ".q", x, prefix + "proj_query", width, width, false);
    const uint32_t k = parts_.linear(name + ".k", x, prefix + "proj_key", width, width, false);
    const uint32_t v = parts_.linear(name + ".v", x, prefix + "proj_val", width, width, false);
    // A stream begins behind rows of zeros, which are seen; their keys and values are zeros too.
    RingOptions full;
    const std::string mask = prefix + "attn.adaptive_span._mask.";
    const Reach seen = reach(mask);
    full.initial_rows = seen.memory;
    const std::string memory = "mem." + name;
    const uint32_t ring = builder_.ring(memory, seen.memory, full);
    const uint32_t old_x = builder_.ring_state(memory, ring, width);
    const uint32_t old_k = builder_.ring_state(memory + ".k", ring, width);
    const uint32_t old_v = builder_.ring_state(memory + ".v", ring, width);

    GraphBuilder::Attention options;
    options.heads = options.kv_heads = config_.heads;
    options.scale = attention_scale(config_.head_width());
    if (config_.persistent != 0) {
      options.sources.push_back(persistent(name, prefix + "attn.persistent_memory."));
    }
    options.sources.push_back({old_k, old_v});
    options.sources.push_back({k, v});
    options.pattern.kind = schema::PatternKind::Past;
    options.pattern.before = config_.span - seen.trimmed;
    options.pattern.first = config_.persistent;
    options.relative = positions(seen.memory);
    if (config_.adaptive) {
      options.adaptive_span = spans(name, mask);
    }
    const uint32_t attended = builder_.attention(name + ".attention", q, options);
    builder_.debug_output(attended);
    builder_.ring_push({x, k, v}, {old_x, old_k, old_v});
    return parts_.linear(name + ".attention.out", attended, prefix + "proj_out", width, width,
                         false);
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string prefix = "layers." + std::to_string(index) + ".";
    const uint32_t width = config_.width;
    constexpr float kEpsilon = 1e-5f;
    const uint32_t attended = attention(name, prefix + "attn.", x);
    const uint32_t sum = builder_.add(name + ".attended", x, attended);
    const std::string next = "hidden_states." + std::to_string(index + 1);
    const bool feeds = config_.persistent == 0;
    uint32_t y =
        parts_.layer_norm(feeds ? name + ".norm1" : next, sum, prefix + "norm1", width, kEpsilon);
    if (feeds) {
      const uint32_t wide =
          parts_.linear(name + ".ff.wide", y, prefix + "ff.fc1", width, config_.inner_width);
      const uint32_t active =
          builder_.activate(name + ".ff.active", wide, schema::Activation::Relu);
      const uint32_t narrow =
          parts_.linear(name + ".ff.out", active, prefix + "ff.fc2", config_.inner_width, width);
      y = parts_.layer_norm(next, builder_.add(name + ".ff", y, narrow), prefix + "norm2", width,
                            kEpsilon);
    }
    builder_.debug_output(y);
    return y;
  }

  const Checkpoint& checkpoint_;
  const AdaptiveSpan& config_;
  GraphBuilder builder_;
  Parts parts_;
  std::map<uint32_t, GraphBuilder::Relative> positions_;
};

}  // namespace

void import_adaptive_span(const Checkpoint& checkpoint, const ImportOptions& options,
                          Graph& graph) {
  const AdaptiveSpan config = read(checkpoint, options);
  Builder(checkpoint, config, graph).build();
  write_metadata(checkpoint, graph,
                 {{"attn_span", config.span},
                  {"hidden_size", config.width},
                  {"max_segment", config.max_segment},
                  {"nb_heads", config.heads},
                  {"nb_layers", config.layers},
                  {"pers_mem_size", config.persistent},
                  {"vocab_size", config.vocabulary}});
}

}  // namespace oxbow::convert
