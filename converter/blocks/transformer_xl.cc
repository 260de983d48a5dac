#include "converter/blocks/transformer_xl.h"

#include <algorithm>
#include <cmath>

#include "converter/blocks/parts.h"
#include "host/errors.h"
#include "runtime/base/checked.h"

namespace oxbow::convert {
/// The innermost loop runs over outputs, which lets the compiler use vectors: the tables of large models take
/// billions of products.
std::vector<float> matrix_products(const std::vector<float>& x, const std::vector<float>& matrix,
                                   size_t width) {
  const size_t rows = matrix.size() / width;
  const std::vector<float> columns = transposed(matrix, rows, width);
  std::vector<float> out;
  std::vector<double> sums(rows);
  for (size_t first = 0; first < x.size(); first += width) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (size_t i = 0; i < width; ++i) {
      const double factor = x[first + i];
      const float* column = columns.data() + i * rows;
      for (size_t r = 0; r < rows; ++r) sums[r] += factor * column[r];
    }
    for (const double sum : sums) out.push_back(static_cast<float>(sum));
  }
  return out;
}

std::vector<float> sinusoid_distances(uint32_t count, uint32_t width) {
  std::vector<double> positions, frequencies;
  for (uint32_t t = 0; t < count; ++t) positions.push_back(t);
  for (uint32_t i = 0; i < width; i += 2) {
    frequencies.push_back(std::pow(10000.0, -static_cast<double>(i) / width));
  }
  return sinusoids(positions, frequencies);
}

std::vector<float> head_products(const std::vector<float>& table, const std::vector<float>& vector,
                                 size_t heads) {
  const size_t head_width = vector.size() / heads;
  std::vector<float> out;
  for (size_t first = 0; first < table.size(); first += vector.size()) {
    for (size_t head = 0; head < heads; ++head) {
      double sum = 0;
      for (size_t i = 0; i < head_width; ++i) {
        const size_t column = head * head_width + i;
        sum += double{table[first + column]} * vector[column];
      }
      out.push_back(static_cast<float>(sum));
    }
  }
  return out;
}

namespace {

/// One model being built: the builder, the checkpoint, and what all layers share.
class Decoder {
 public:
  Decoder(const Checkpoint& checkpoint, const TransfoXl& config, Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        builder_(graph),
        parts_(checkpoint, builder_),
        width_(config.words.width),
        attention_width_(config.heads * config.head_width) {
    GraphBuilder::Entry entry;
    entry.vocabulary = config.words.vocabulary;
    entry.max_segment = config.max_segment;
    entry.any_pieces = config.same_length;
    builder_.begin_entry(entry);
    if (config.compression) {
      compressed_symbol_ = builder_.symbol(
          "compressed",
          static_cast<uint32_t>(ceil_div(config.max_segment, config.compression->rate)));
    }
    make_positions();
  }

  void build() {
    const float scale = static_cast<float>(std::sqrt(static_cast<double>(width_)));
    uint32_t x = embed_adaptive("hidden_states.0", config_.words, scale, builder_, parts_);
    builder_.debug_output(x);
    for (uint32_t i = 0; i < config_.layers; ++i) x = layer(i, x);
    builder_.debug_output(x, "hidden");
    if (config_.remembers_output && config_.memory_rows > 0) {
      const Memory memory = remember(config_.layers, GraphBuilder::kNone, GraphBuilder::kNone);
      builder_.ring_push({x}, {memory.x});
    }
    adaptive_head(config_.words, builder_.take_rows("tail", x), checkpoint_, builder_, parts_);
  }

 private:
  /// The states of one memory; kNone where there is none.
  struct Memory {
    uint32_t x, k, v;
  };
  /// Weights of the attention: q, k and v are thirds of one matrix.
  struct Projections {
    std::vector<float> q, k, v;
  };

  /// All distances that are told apart; their sinusoids, which every layer projects for itself.
  void make_positions() {
    const uint32_t compressed = config_.compression ? config_.compression->memory_rows : 0;
    const uint32_t furthest = config_.same_length
                                  ? config_.memory_rows - 1
                                  : compressed + config_.memory_rows + config_.max_segment - 1;
    if (config_.learned_distances > 0) {
      distances_ = std::min(config_.learned_distances, furthest + 1);
      return;
    }
    distances_ = (config_.clamp > 0 ? std::min(config_.clamp, furthest) : furthest) + 1;
    positions_ = sinusoid_distances(distances_, width_);
  }

  Projections read_projections(const std::string& prefix) const {
    const std::vector<float> packed =
        checkpoint_.matrix(prefix + "qkv_net.weight", uint64_t{3} * attention_width_, width_);
    const auto third = [&](size_t index) {
      return rows_of(packed, width_, index * attention_width_, attention_width_);
    };
    return {third(0), third(1), third(2)};
  }

  uint32_t project(const std::string& name, uint32_t x, const std::string& weight,
                   std::vector<float> values) {
    return builder_.linear(name, x,
                           builder_.weight(weight, attention_width_, width_, std::move(values)),
                           GraphBuilder::kNone);
  }

  /// A memory whose keys and values begin as the given rows.
  Memory remember(uint32_t index, uint32_t initial_k, uint32_t initial_v) {
    return remember("mem.layer" + std::to_string(index), config_.memory_rows,
                    index < config_.layers, initial_k, initial_v);
  }
  Memory remember(const std::string& name, uint32_t rows, bool is_read, uint32_t initial_k,
                  uint32_t initial_v) {
    RingOptions options;
    if (config_.starts_with_zeros) options.initial_rows = rows;
    const uint32_t ring = builder_.ring(name, rows, options);
    Memory memory = {builder_.ring_state(name, ring, width_), GraphBuilder::kNone,
                     GraphBuilder::kNone};
    if (is_read) {
      memory.k = builder_.ring_state(name + ".k", ring, attention_width_, initial_k);
      memory.v = builder_.ring_state(name + ".v", ring, attention_width_, initial_v);
    }
    return memory;
  }

  /// The layer's memory. A row of zeros that is normed first becomes the norm's bias, and its key and
  /// value what is made of that.
  Memory remember_layer(uint32_t index, const std::string& prefix, const Projections& weights) {
    if (!config_.starts_with_zeros || !config_.pre_norm) {
      return remember(index, GraphBuilder::kNone, GraphBuilder::kNone);
    }
    const std::vector<float> zero = checkpoint_.vector(prefix + "layer_norm.bias", width_);
    const auto initial = [&](const std::string& name, const std::vector<float>& matrix) {
      return builder_.weight(prefix + name, 1, attention_width_,
                             matrix_products(zero, matrix, width_));
    };
    return remember(index, initial("initial_key", weights.k), initial("initial_value", weights.v));
  }

  std::vector<float> position_bias(const std::string& prefix, const std::string& name) const {
    const std::string own = prefix + name, shared = config_.prefix + name;
    if (!config_.untied_biases) checkpoint_.ignore_tensor(own);
    return checkpoint_.tensor(config_.untied_biases ? own : shared,
                              {config_.heads, config_.head_width});
  }

  /// The rows of layer `index` in a tensor of all layers by distance: the last belongs to 0.
  std::vector<float> from_last(const std::vector<float>& all, uint32_t index,
                               uint32_t width) const {
    std::vector<float> out;
    for (uint32_t d = 0; d < distances_; ++d) {
      const size_t row = size_t{index + 1} * config_.stored_distances - 1 - d;
      const std::vector<float> values = rows_of(all, width, row, 1);
      out.insert(out.end(), values.begin(), values.end());
    }
    return out;
  }

  /// The layers share their tensors of positions.
  GraphBuilder::Relative read_learned(uint32_t index, const std::string& prefix) {
    const uint32_t layers = config_.layers, heads = config_.heads;
    const uint64_t rows = config_.stored_distances;
    const std::vector<float> vectors =
        checkpoint_.tensor(config_.prefix + "r_emb", {layers, rows, heads, config_.head_width});
    const std::vector<float> biases =
        checkpoint_.tensor(config_.prefix + "r_bias", {layers, rows, heads});
    const std::vector<float> own =
        checkpoint_.tensor(config_.prefix + "r_w_bias", {layers, heads, config_.head_width});
    return {builder_.weight(prefix + "r_emb", distances_, attention_width_,
                            from_last(vectors, index, attention_width_)),
            builder_.weight(prefix + "r_bias", distances_, heads, from_last(biases, index, heads)),
            builder_.weight(prefix + "r_w_bias", 1, attention_width_,
                            rows_of(own, attention_width_, index, 1))};
  }

  GraphBuilder::Relative read_relative(const std::string& prefix) {
    const std::string net = prefix + "r_net.weight";
    std::vector<float> table =
        matrix_products(positions_, checkpoint_.matrix(net, attention_width_, width_), width_);
    std::vector<float> bias =
        head_products(table, position_bias(prefix, "r_r_bias"), config_.heads);
    return {builder_.weight(prefix + "positions", distances_, attention_width_, std::move(table)),
            builder_.weight(prefix + "position_bias", distances_, config_.heads, std::move(bias)),
            builder_.weight(prefix + "r_w_bias", 1, attention_width_,
                            position_bias(prefix, "r_w_bias"))};
  }

  schema::PatternT pattern() const {
    schema::PatternT pattern;
    if (config_.same_length) {
      pattern.kind = schema::PatternKind::Window;
      pattern.before = config_.memory_rows - 1;
      pattern.causal = true;
    }
    return pattern;
  }

  uint32_t attend(uint32_t index, const std::string& name, const std::string& prefix, uint32_t x,
                  uint32_t z) {
    Projections weights = read_projections(prefix);
    GraphBuilder::Attention options;
    options.heads = options.kv_heads = config_.heads;
    options.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config_.head_width)));
    options.pattern = pattern();
    options.relative =
        config_.learned_distances > 0 ? read_learned(index, prefix) : read_relative(prefix);
    Memory memory = {}, compressed = {};
    if (config_.compression) {
      compressed = remember("c_mem." + name, config_.compression->memory_rows, true,
                            GraphBuilder::kNone, GraphBuilder::kNone);
      options.sources.push_back({compressed.k, compressed.v});
    }
    if (config_.memory_rows > 0) {
      memory = remember_layer(index, prefix, weights);
      options.sources.push_back({memory.k, memory.v});
    }
    const uint32_t q = project(name + ".q", z, prefix + "q", std::move(weights.q));
    const uint32_t key_weight =
        builder_.weight(prefix + "k", attention_width_, width_, std::move(weights.k));
    const uint32_t value_weight =
        builder_.weight(prefix + "v", attention_width_, width_, std::move(weights.v));
    const uint32_t k = builder_.linear(name + ".k", z, key_weight, GraphBuilder::kNone);
    const uint32_t v = builder_.linear(name + ".v", z, value_weight, GraphBuilder::kNone);
    options.sources.push_back({k, v});
    uint32_t log_sums = GraphBuilder::kNone;
    const uint32_t attended = builder_.attention(name + ".attention", q, options,
                                                 keeps_most_used() ? &log_sums : nullptr);
    // The memory is not needed after the attention: update it here, while keys and values are alive.
    schema::RingPushOptionsT push;
    if (config_.compression) {
      push.group = config_.compression->rate;
      const uint32_t rows =
          keeps_most_used()
              ? keep_most_used(name, {q, log_sums, k, x, memory.k, memory.x, *options.relative},
                               options)
              : compress(index, name + ".compressed", x, memory.x);
      builder_.ring_push(
          {rows, builder_.linear(name + ".compressed.k", rows, key_weight, GraphBuilder::kNone),
           builder_.linear(name + ".compressed.v", rows, value_weight, GraphBuilder::kNone)},
          {compressed.x, compressed.k, compressed.v});
    }
    if (config_.memory_rows > 0) {
      builder_.ring_push({x, k, v}, {memory.x, memory.k, memory.v}, push);
    }
    return parts_.linear(name + ".attention.out", attended, prefix + "o_net", attention_width_,
                         width_, false);
  }

  bool keeps_most_used() const {
    return config_.compression && config_.compression->function == Compression::Function::kMostUsed;
  }

  /// Of each group that leaves the memory the row that was used most.
  uint32_t keep_most_used(const std::string& name, GraphBuilder::MostUsed from,
                          const GraphBuilder::Attention& attention) {
    schema::MostUsedOptionsT options;
    options.heads = attention.heads;
    options.scale = attention.scale;
    options.group = config_.compression->rate;
    from.usage = builder_.state("usage." + name, config_.memory_rows, 1);
    return builder_.most_used(name + ".compressed", from, compressed_symbol_, options);
  }

  /// What becomes of the rows that leave the memory when x enters it.
  uint32_t compress(uint32_t index, const std::string& name, uint32_t x, uint32_t memory) {
    const Compression& compression = *config_.compression;
    schema::RingEvictOptionsT evict;
    evict.group = compression.rate;
    const uint32_t leaving =
        builder_.ring_evict(name + ".leaving", x, memory, compressed_symbol_, evict);
    if (compression.function != Compression::Function::kConvolution) {
      const bool mean = compression.function == Compression::Function::kMean;
      return builder_.pool(name, leaving, compression.rate,
                           mean ? schema::Pooling::Mean : schema::Pooling::Max);
    }
    const std::string prefix = config_.prefix + "layers." + std::to_string(index) + ".compress.";
    const uint32_t taps = compression.taps == 0 ? compression.rate : compression.taps;
    const uint32_t span = (taps - 1) * compression.dilation + 1;
    const uint32_t before =
        span > compression.rate
            ? static_cast<uint32_t>(ceil_div(span - compression.rate, compression.rate))
            : 0;
    const uint32_t rows = (before + 1) * compression.rate;
    const std::vector<float> kernel = checkpoint_.tensor(prefix + "weight", {width_, width_, taps});
    std::vector<float> matrix(size_t{width_} * rows * width_);
    for (size_t out = 0; out < width_; ++out) {
      for (size_t in = 0; in < width_; ++in) {
        for (size_t tap = 0; tap < taps; ++tap) {
          const size_t row = rows - 1 - (taps - 1 - tap) * compression.dilation;
          matrix[(out * rows + row) * width_ + in] = kernel[(out * width_ + in) * taps + tap];
        }
      }
    }
    return builder_.linear(
        name, with_groups_before(name, leaving, before),
        builder_.weight(prefix + "weight", width_, rows * width_, std::move(matrix)),
        parts_.vector(prefix + "bias", width_));
  }

  /// Groups with as many of those that left before them on their left.
  uint32_t with_groups_before(const std::string& name, uint32_t groups, uint32_t before) {
    if (before == 0) return groups;
    const uint32_t width = config_.compression->rate * width_;
    const uint32_t memory =
        builder_.ring_state(name + ".left", builder_.ring(name + ".left", before), width);
    schema::ConvolutionOptionsT options;
    options.heads = 1;
    options.taps = before + 1;
    options.left = before;
    std::vector<uint32_t> parts;
    for (uint32_t shift = before; shift > 0; --shift) {
      // A filter that takes the group so many before.
      std::vector<float> filter(before + 1);
      filter[before - shift] = 1.0f;
      const std::string part = name + ".before" + std::to_string(shift);
      parts.push_back(builder_.convolution(
          part, groups, builder_.weight(part + ".filter", 1, before + 1, std::move(filter)), memory,
          options));
    }
    parts.push_back(groups);
    const uint32_t joined = builder_.concat_columns(name + ".joined", parts);
    builder_.ring_push({groups}, {memory});
    return joined;
  }

  uint32_t feed_forward(const std::string& name, const std::string& prefix, uint32_t x) {
    const uint32_t wide =
        parts_.linear(name + ".ff.wide", x, prefix + "CoreNet.0", width_, config_.inner_width);
    const uint32_t active = builder_.activate(name + ".ff.active", wide, schema::Activation::Relu);
    return parts_.linear(name + ".ff.out", active, prefix + "CoreNet.3", config_.inner_width,
                         width_);
  }

  /// A block with its residual connection, normed before or after as the model has it.
  template <typename Block>
  uint32_t residual(const std::string& name, const std::string& prefix, uint32_t x,
                    const Block& block) {
    const std::string norm = prefix + "layer_norm";
    if (config_.pre_norm) {
      const uint32_t z = parts_.layer_norm(name + ".normed", x, norm, width_, config_.epsilon);
      return builder_.add(name, x, block(z));
    }
    const uint32_t sum = builder_.add(name + ".sum", x, block(x));
    return parts_.layer_norm(name, sum, norm, width_, config_.epsilon);
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string prefix = config_.prefix + "layers." + std::to_string(index) + ".";
    const std::string attention = prefix + "dec_attn.", forward = prefix + "pos_ff.";
    const uint32_t y = residual(name + ".attended", attention, x,
                                [&](uint32_t z) { return attend(index, name, attention, x, z); });
    builder_.debug_output(y);
    const uint32_t out = residual("hidden_states." + std::to_string(index + 1), forward, y,
                                  [&](uint32_t z) { return feed_forward(name, forward, z); });
    builder_.debug_output(out);
    return out;
  }

  const Checkpoint& checkpoint_;
  const TransfoXl& config_;
  GraphBuilder builder_;
  Parts parts_;
  uint32_t width_;
  uint32_t attention_width_;
  uint32_t distances_ = 0;
  uint32_t compressed_symbol_ = 0;
  std::vector<float> positions_;
};

/// Refuses a value of a key that would make another model.
void require_key(const Checkpoint& checkpoint, const std::string& key, double max,
                 const std::string& expected) {
  const double value = checkpoint.number(key, -1e9, 1e9, 0);
  if (value <= max) return;
  checkpoint.refuse(key + " is " + std::to_string(static_cast<int64_t>(value)) + ", expected " +
                    expected);
}

}  // namespace

void read_transfo_xl(const Checkpoint& checkpoint, const ImportOptions& options,
                     TransfoXl* config) {
  const bool learns = config->may_learn_positions;
  require_key(
      checkpoint, "attn_type", learns ? 1 : 0,
      std::string(learns ? "0 or 1" : "0") + ": other kinds of positions are not supported");
  require_key(checkpoint, "ext_len", 0, "0: extended contexts are not supported");
  require_key(checkpoint, "sample_softmax", 0,
              "none or a number below 1: a sampled softmax is not supported");
  AdaptiveWords& words = config->words;
  words.width = checkpoint.size("d_model", 1, kMaxSize);
  const bool learned = checkpoint.number("attn_type", -1e9, 1e9, 0) == 1;
  // Half of a position's vector are sines.
  if (!learned) require_multiple(checkpoint, "d_model", words.width, "sine and cosine", 2);
  read_adaptive_words(checkpoint, &words);
  config->heads = checkpoint.size("n_head", 1, kMaxSize);
  config->head_width = checkpoint.size("d_head", 1, kMaxSize / config->heads);
  config->inner_width = checkpoint.size("d_inner", 1, kMaxSize);
  config->layers = checkpoint.size("n_layer", 1, kMaxLayers);
  config->memory_rows = checkpoint.size("mem_len", 0, kMaxSize);
  config->clamp = static_cast<uint32_t>(
      std::max(0.0, checkpoint.number("clamp_len", -1e9, kMaxSize, config->clamp)));
  config->pre_norm = checkpoint.flag("pre_lnorm", config->pre_norm);
  config->same_length = checkpoint.flag("same_length", config->same_length);
  if (config->same_length && config->memory_rows == 0) {
    checkpoint.refuse(
        "mem_len is 0 with same_length, which hides all keys from every query; "
        "expected at least 1, or same_length false");
  }
  config->max_segment = read_segment(checkpoint, options);
  if (learned) {
    config->stored_distances = checkpoint.size("tgt_len", 1, kMaxSize) + config->memory_rows;
    config->learned_distances = config->stored_distances;
    if (config->clamp > 0) {
      config->learned_distances = std::min(config->clamp, config->learned_distances);
    }
  }
  // Training, and the adaptive softmax, which is told by cutoffs alone.
  checkpoint.ignore_keys({"adaptive", "adapt_inp", "dropatt", "init", "init_range", "init_std",
                          "proj_init_std", "tgt_len", "trainer_compatible"});
  ignore_common_keys(checkpoint);
}

void build_transfo_xl(const Checkpoint& checkpoint, const TransfoXl& config, Graph& graph) {
  Decoder(checkpoint, config, graph).build();
  // A buffer that follows from d_model.
  checkpoint.ignore_tensor(config.prefix + "pos_emb.inv_freq");
  write_metadata(checkpoint, graph,
                 {{"d_embed", config.words.embedding_width},
                  {"d_head", config.head_width},
                  {"d_inner", config.inner_width},
                  {"d_model", config.words.width},
                  {"max_segment", config.max_segment},
                  {"mem_len", config.memory_rows},
                  {"n_head", config.heads},
                  {"n_layer", config.layers},
                  {"vocabulary", config.words.vocabulary}});
  graph.model.metadata->states_time_major = true;
}

}  // namespace oxbow::convert
