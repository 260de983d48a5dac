#include "converter/blocks/memory_decoder.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "converter/blocks/parts.h"
#include "host/errors.h"
#include "runtime/base/checked.h"

namespace oxbow::convert {
namespace {

/// One model being built: the builder, the checkpoint, and what all layers share.
class Decoder {
 public:
  Decoder(const Checkpoint& checkpoint, const MemoryDecoder& config, Graph& graph)
      : checkpoint_(checkpoint), config_(config), graph_(graph), builder_(graph) {
    GraphBuilder::Entry entry;
    entry.vocabulary = config.vocabulary;
    entry.max_segment = config.max_segment;
    builder_.begin_entry(entry);
    if (compresses()) {
      const uint32_t most =
          static_cast<uint32_t>(ceil_div(config.max_segment, config.compression->rate));
      compressed_symbol_ = builder_.symbol("compressed", most);
    }
  }

  void build() {
    uint32_t x = builder_.embedding("hidden_states.0", builder_.tokens(),
                                    matrix("src_embed.weight", config_.vocabulary, config_.width));
    builder_.debug_output(x);
    for (uint32_t i = 0; i < config_.layers; ++i) x = layer(i, x);
    const uint32_t tail = builder_.take_rows("tail", x);
    const uint32_t last = norm("final_norm", tail, read_norm("transformer.norm"));
    builder_.debug_output(last);
    builder_.logits(last, matrix("generator.weight", config_.vocabulary, config_.width),
                    vector("generator.bias", config_.vocabulary));
    warn_of_clamped_distances();
  }

 private:
  struct Norm {
    uint32_t weight, bias;
  };
  /// The projections of one attention layer, used for tokens and for compressed rows alike.
  struct KeyValue {
    Norm norm;
    uint32_t key, value, value_bias;
  };
  struct Rows {
    uint32_t x, k, v;
  };

  bool compresses() const { return config_.compression && config_.compression->memory_rows > 0; }
  uint32_t group() const { return config_.compression ? config_.compression->rate : 1; }

  uint32_t matrix(const std::string& name, uint32_t rows, uint32_t width) {
    return builder_.weight(name, rows, width, checkpoint_.matrix(name, rows, width));
  }
  uint32_t vector(const std::string& name, uint32_t width) {
    return builder_.weight(name, 1, width, checkpoint_.vector(name, width));
  }
  Norm read_norm(const std::string& prefix) {
    return {vector(prefix + ".weight", config_.width), vector(prefix + ".bias", config_.width)};
  }
  uint32_t norm(const std::string& name, uint32_t x, const Norm& norm) {
    return builder_.layer_norm(name, x, norm.weight, norm.bias, config_.epsilon);
  }

  /// Keys and values of rows of the residual stream. They depend on the row alone, so every row is
  /// projected once in its life, as a token or as a compressed row.
  Rows project(const std::string& name, uint32_t x, uint32_t normed, const KeyValue& weights) {
    return {x, builder_.linear(name + ".k", normed, weights.key, GraphBuilder::kNone),
            builder_.linear(name + ".v", normed, weights.value, weights.value_bias)};
  }

  Rows ring_states(const std::string& name, uint32_t capacity) {
    const uint32_t ring = builder_.ring(name, capacity);
    return {builder_.ring_state(name, ring, config_.width),
            builder_.ring_state(name + ".k", ring, config_.width),
            builder_.ring_state(name + ".v", ring, config_.width)};
  }

  void push(const Rows& rows, const Rows& states, uint32_t rows_per_group) {
    schema::RingPushOptionsT options;
    options.group = rows_per_group;
    builder_.ring_push({rows.x, rows.k, rows.v}, {states.x, states.k, states.v}, options);
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string prefix = "transformer.layers." + std::to_string(index) + ".";
    const std::string attention = prefix + "self_attn.";
    const uint32_t width = config_.width;

    const KeyValue weights = {read_norm(prefix + "norm_self_attn"),
                              matrix(attention + "key.linear.weight", width, width),
                              matrix(attention + "value.linear.weight", width, width),
                              vector(attention + "value.linear.bias", width)};
    const uint32_t z = norm(name + ".normed", x, weights.norm);
    const uint32_t q =
        builder_.linear(name + ".q", z, matrix(attention + "query.linear.weight", width, width),
                        GraphBuilder::kNone);
    const Rows segment = project(name, x, z, weights);

    std::vector<GraphBuilder::Source> sources;
    Rows compressed_memory = {};
    if (compresses()) {
      compressed_memory = ring_states("c_mem." + name, config_.compression->memory_rows);
      sources.push_back({compressed_memory.k, compressed_memory.v});
    }
    const Rows memory = ring_states("mem." + name, config_.memory_rows);
    sources.push_back({memory.k, memory.v});
    sources.push_back({segment.k, segment.v});

    const GraphBuilder::Relative relative = read_relative(attention);
    const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_width())));
    GraphBuilder::Attention options;
    options.heads = options.kv_heads = config_.heads;
    options.scale = scale;
    options.sources = sources;
    options.relative = relative;
    const uint32_t attended = builder_.attention(name + ".attention", q, options);
    builder_.debug_output(attended);

    // The memory is not needed after the attention: update it here, while keys and values are
    // alive.
    if (compresses()) {
      schema::RingEvictOptionsT evict;
      evict.group = group();
      const uint32_t leaving =
          builder_.ring_evict(name + ".leaving", x, memory.x, compressed_symbol_, evict);
      const uint32_t compressed = compress(name + ".compressed", prefix, leaving);
      const uint32_t normed = norm(name + ".compressed.normed", compressed, weights.norm);
      push(project(name + ".compressed", compressed, normed, weights), compressed_memory, 1);
    }
    push(segment, memory, group());

    const uint32_t projected = builder_.linear(name + ".attention.out", attended,
                                               matrix(attention + "output.weight", width, width),
                                               vector(attention + "output.bias", width));
    const uint32_t y = builder_.add(name + ".attended", x, projected);
    builder_.debug_output(y);
    return feed_forward(index, name, prefix, y);
  }

  uint32_t feed_forward(uint32_t index, const std::string& name, const std::string& prefix,
                        uint32_t x) {
    const uint32_t width = config_.width, inner = config_.inner_width;
    const uint32_t z = norm(name + ".ff.normed", x, read_norm(prefix + "norm_ff"));
    const uint32_t wide = builder_.linear(
        name + ".ff.wide", z, matrix(prefix + "feed_forward.layer1.weight", inner, width),
        vector(prefix + "feed_forward.layer1.bias", inner));
    const uint32_t active = builder_.activate(name + ".ff.active", wide, config_.activation);
    const uint32_t narrow = builder_.linear(
        name + ".ff.out", active, matrix(prefix + "feed_forward.layer2.weight", width, inner),
        vector(prefix + "feed_forward.layer2.bias", width));
    const uint32_t y = builder_.add("hidden_states." + std::to_string(index + 1), x, narrow);
    builder_.debug_output(y);
    return y;
  }

  uint32_t compress(const std::string& name, const std::string& prefix, uint32_t leaving) {
    const Compression& compression = *config_.compression;
    if (compression.function != Compression::Function::kConvolution) {
      const bool mean = compression.function == Compression::Function::kMean;
      return builder_.pool(name, leaving, group(),
                           mean ? schema::Pooling::Mean : schema::Pooling::Max);
    }
    const uint64_t width = config_.width, rate = compression.rate;
    const std::string weight = prefix + "compress.conv.weight";
    std::vector<float> values =
        convolution_matrix(checkpoint_.tensor(weight, {width, width, rate}), width, width, rate);
    return builder_.linear(
        name, leaving,
        builder_.weight(weight, config_.width, config_.width * group(), std::move(values)),
        vector(prefix + "compress.conv.bias", config_.width));
  }

  uint32_t head_width() const { return config_.width / config_.heads; }

  /// Keys a query can see: both memories full, and the longest segment.
  uint32_t seen_keys() const {
    return (compresses() ? config_.compression->memory_rows : 0) + config_.memory_rows +
           config_.max_segment;
  }

  /// The original keeps a row for every offset from -P to P - 1 and reads row P - t for distance t.
  /// We keep the distances that can occur, from 0 up.
  GraphBuilder::Relative read_relative(const std::string& prefix) {
    const std::string table_name = prefix + "key_pos_embeddings";
    const std::string bias_name = prefix + "key_pos_bias";
    const uint32_t heads = config_.heads, width = config_.width;
    const std::vector<uint64_t>& shape = checkpoint_.shape(table_name);
    const uint64_t table_rows = shape.empty() ? 0 : shape[0];
    if (table_rows == 0 || table_rows % 2 != 0 || table_rows > 2 * kMaxSize) {
      throw InputError("tensor " + table_name + " has " + std::to_string(table_rows) +
                       " rows, expected an even number: 2 P");
    }
    const uint32_t p = static_cast<uint32_t>(table_rows / 2);
    if (checkpoint_.has_key("P") && checkpoint_.size("P", 1, kMaxSize) != p) {
      throw InputError("tensor " + table_name + " has " + std::to_string(table_rows) +
                       " rows, expected " + std::to_string(2 * checkpoint_.size("P", 1, kMaxSize)) +
                       ": twice P of config.json");
    }
    const std::vector<float> table =
        checkpoint_.tensor(table_name, {table_rows, heads, head_width()});
    const std::vector<float> bias = checkpoint_.tensor(bias_name, {table_rows, heads});
    const std::string query_name = prefix + "query_pos_bias";
    std::vector<float> query_bias = checkpoint_.tensor(query_name, {heads, head_width()});

    const uint32_t rows = std::min(p, seen_keys() - 1) + 1;
    clamped_at_ = seen_keys() - 1 > p ? std::max(clamped_at_, p) : clamped_at_;
    return {builder_.weight(table_name, rows, width, reversed(table, p, rows, width)),
            builder_.weight(bias_name, rows, heads, reversed(bias, p, rows, heads)),
            builder_.weight(query_name, 1, width, std::move(query_bias))};
  }

  static std::vector<float> reversed(const std::vector<float>& table, uint32_t p, uint32_t rows,
                                     uint32_t width) {
    std::vector<float> out;
    out.reserve(size_t{rows} * width);
    for (uint32_t t = 0; t < rows; ++t) {
      const auto row = table.begin() + static_cast<std::ptrdiff_t>(size_t{p - t} * width);
      out.insert(out.end(), row, row + width);
    }
    return out;
  }

  void warn_of_clamped_distances() {
    if (clamped_at_ == 0) return;
    graph_.warnings.push_back("memories and a segment of " + std::to_string(config_.max_segment) +
                              " tokens reach " + std::to_string(seen_keys() - 1) +
                              " keys back; distances beyond P = " + std::to_string(clamped_at_) +
                              " are clamped to P, where the original would fail");
  }

  const Checkpoint& checkpoint_;
  const MemoryDecoder& config_;
  Graph& graph_;
  GraphBuilder builder_;
  uint32_t compressed_symbol_ = 0;
  /// P of the position tables when a distance can exceed it.
  uint32_t clamped_at_ = 0;
};

void write_sizes(const Checkpoint& checkpoint, const MemoryDecoder& config, Graph& graph) {
  std::vector<std::pair<std::string, uint32_t>> sizes = {
      {"d_ff", config.inner_width},      {"d_model", config.width},
      {"heads", config.heads},           {"max_segment", config.max_segment},
      {"mem_len", config.memory_rows},   {"n_layers", config.layers},
      {"vocabulary", config.vocabulary},
  };
  if (config.compression) {
    sizes.emplace_back("c_mem_len", config.compression->memory_rows);
    sizes.emplace_back("compression_rate", config.compression->rate);
  }
  write_metadata(checkpoint, graph, sizes);
  graph.model.metadata->time_major = graph.model.metadata->states_time_major = true;
}

}  // namespace

MemoryDecoder read_memory_decoder(const Checkpoint& checkpoint, const ImportOptions& options) {
  MemoryDecoder config;
  config.vocabulary = read_labml_vocabulary(checkpoint);
  config.width = checkpoint.size("d_model", 1, kMaxSize);
  config.heads = checkpoint.size("heads", 1, config.width);
  require_multiple(checkpoint, "d_model", config.width, "heads", config.heads);
  config.inner_width = checkpoint.size("d_ff", 1, kMaxSize);
  config.layers = checkpoint.size("n_layers", 1, kMaxLayers);
  config.memory_rows = checkpoint.size("mem_len", 1, kMaxSize);
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-12, 1, 1e-5));
  config.activation = read_activation(checkpoint, "activation", "relu");
  if (checkpoint.flag("is_gated", false)) {
    checkpoint.refuse(
        "is_gated is true, expected false: gated feed-forward layers are "
        "not supported yet");
  }
  config.max_segment = read_segment(checkpoint, options);
  checkpoint.ignore_keys({"P", "architectures", "batch_size", "dropout", "torch_dtype", "dtype",
                          "transformers_version", "licence", "license", "name", "description",
                          "training", "seed", "source", "seq_len", "bos_token_id", "eos_token_id",
                          "pad_token_id"});
  return config;
}

void build_memory_decoder(const Checkpoint& checkpoint, const MemoryDecoder& config, Graph& graph) {
  if (config.compression && config.memory_rows + 1 < config.compression->rate) {
    checkpoint.refuse("mem_len is " + std::to_string(config.memory_rows) +
                      ", expected at least compression_rate - 1 = " +
                      std::to_string(config.compression->rate - 1) +
                      ": a whole group must be there to be compressed");
  }
  Decoder(checkpoint, config, graph).build();
  write_sizes(checkpoint, config, graph);
}

}  // namespace oxbow::convert
