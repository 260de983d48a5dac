// The Compressive Transformer as written by Phil Wang (lucidrains/compressive-transformer-pytorch). What
// is remembered are the normed inputs of a layer's attention, and memories move on only after a run of
// exactly `seq_len` tokens.
//
// With enhanced_recurrence the memories move down by one layer in front of every run: a layer reads
// what the layer above it wrote, and continues that memory. So no key or value can be kept from one run
// to the next, and every run projects the memories anew, with the weights of the layer that reads them.

#include <algorithm>
#include <cmath>
#include <optional>

#include "converter/blocks/parts.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

struct Config {
  uint32_t vocabulary = 0;
  uint32_t width = 0;
  uint32_t embedding_width = 0;
  uint32_t heads = 0;
  uint32_t layers = 0;
  uint32_t segment = 0;
  uint32_t memory_rows = 0;
  uint32_t compressed_rows = 0;
  uint32_t ratio = 0;
  bool gated_residual = true;
  bool gated_feed_forward = false;
  bool moves_down = true;
  /// Whether each layer has a memory.
  std::vector<bool> remembers;

  size_t memories() const {
    return static_cast<size_t>(std::count(remembers.begin(), remembers.end(), true));
  }
  uint32_t distances() const { return segment + memory_rows + compressed_rows; }
};

Config read_config(const Checkpoint& checkpoint) {
  Config config;
  config.vocabulary = checkpoint.size("num_tokens", 1, kMaxSize);
  config.width = checkpoint.size("dim", 1, kMaxSize);
  config.embedding_width = checkpoint.size("emb_dim", 1, kMaxSize, config.width);
  config.heads = checkpoint.size("heads", 1, config.width, 8);
  require_multiple(checkpoint, "dim", config.width, "heads", config.heads);
  config.layers = checkpoint.size("depth", 1, kMaxLayers);
  config.segment = checkpoint.size("seq_len", 1, kMaxSize);
  config.memory_rows = checkpoint.size("mem_len", config.segment, kMaxSize, config.segment);
  config.ratio = checkpoint.size("cmem_ratio", 1, 4096, 4);
  const uint32_t compressed = config.memory_rows / config.ratio;
  config.compressed_rows = checkpoint.size("cmem_len", compressed, kMaxSize, compressed);
  config.gated_residual = checkpoint.flag("gru_gated_residual", true);
  config.gated_feed_forward = checkpoint.flag("ff_glu", false);
  config.moves_down = checkpoint.flag("enhanced_recurrence", true);
  if (checkpoint.flag("mogrify_gru", false)) {
    checkpoint.refuse("mogrify_gru is true, expected false: it is not supported");
  }
  const std::vector<uint32_t> listed = checkpoint.sizes("memory_layers", 1, config.layers);
  // None means all: the original cannot do without any.
  config.remembers.assign(config.layers, listed.empty());
  for (const uint32_t layer : listed) config.remembers[layer - 1] = true;
  checkpoint.ignore_keys({"attn_dropout", "ff_dropout", "attn_layer_dropout",
                          "reconstruction_attn_dropout", "reconstruction_loss_weight"});
  ignore_common_keys(checkpoint);
  return config;
}

class Decoder {
 public:
  Decoder(const Checkpoint& checkpoint, const Config& config, Graph& graph)
      : checkpoint_(checkpoint), config_(config), builder_(graph), parts_(checkpoint, builder_) {
    GraphBuilder::Entry entry;
    entry.vocabulary = config.vocabulary;
    entry.max_segment = config.segment;
    builder_.begin_entry(entry);
    const uint32_t leaving = config.segment + config.segment % config.ratio;
    compressed_symbol_ = builder_.symbol("compressed", std::max(1u, leaving / config.ratio));
  }

  void build() {
    read_positions();
    uint32_t x = embed();
    for (uint32_t i = 0; i < config_.layers; ++i) {
      if (config_.remembers[i]) memories_.push_back(make_memory(i));
    }
    if (rolls()) roll(x);
    for (uint32_t i = 0; i < config_.layers; ++i) x = layer(i, x);
    update(memories_.back(), last_rows_);
    logits(builder_.take_rows("tail", x));
  }

 private:
  struct Rows {
    uint32_t x, k, v;
  };
  /// What one layer remembers, and what it projects it with.
  struct Memory {
    uint32_t layer;
    Rows recent;
    std::optional<Rows> compressed;
    uint32_t key, value;
  };

  std::string attention_prefix(uint32_t index) const {
    return "attn_layers." + std::to_string(index) + ".fn.fn.";
  }
  bool rolls() const { return config_.moves_down && config_.memories() > 1; }

  uint32_t embed() {
    const uint32_t narrow = builder_.embedding(
        "embedded", builder_.tokens(),
        parts_.matrix("token_emb.weight", config_.vocabulary, config_.embedding_width));
    if (config_.embedding_width == config_.width) return narrow;
    return parts_.linear("hidden_states.0", narrow, "to_model_dim", config_.embedding_width,
                         config_.width);
  }

  void logits(uint32_t x) {
    if (config_.embedding_width != config_.width) {
      x = parts_.linear("narrow", x, "to_logits.0", config_.width, config_.embedding_width);
    }
    builder_.logits(
        x, parts_.matrix("to_logits.1.weight", config_.vocabulary, config_.embedding_width),
        parts_.vector("to_logits.1.bias", config_.vocabulary));
  }

  /// The stored table [heads, distances, head width] ends with distance 0 when both memories are full;
  /// ours begins with it.
  void read_positions() {
    const uint64_t heads = config_.heads, rows = config_.distances();
    const uint64_t head_width = config_.width / heads;
    const std::vector<float> stored = checkpoint_.tensor("pos_emb", {heads, rows, head_width});
    std::vector<float> table(stored.size());
    for (uint64_t head = 0; head < heads; ++head) {
      for (uint64_t t = 0; t < rows; ++t) {
        const auto from =
            stored.begin() + static_cast<std::ptrdiff_t>((head * rows + rows - 1 - t) * head_width);
        std::copy_n(
            from, head_width,
            table.begin() + static_cast<std::ptrdiff_t>(t * config_.width + head * head_width));
      }
    }
    const uint32_t count = config_.distances();
    positions_ = {
        builder_.weight("pos_emb", count, config_.width, std::move(table)),
        builder_.weight("pos_emb.bias", count, config_.heads,
                        std::vector<float>(size_t{count} * config_.heads)),
        builder_.weight("pos_emb.query_bias", 1, config_.width, std::vector<float>(config_.width))};
  }

  Rows ring_states(const std::string& name, uint32_t capacity) {
    const uint32_t ring = builder_.ring(name, capacity);
    return {builder_.ring_state(name, ring, config_.width),
            builder_.ring_state(name + ".k", ring, config_.width),
            builder_.ring_state(name + ".v", ring, config_.width)};
  }

  /// Rows of the packed matrix for keys and values.
  uint32_t half(uint32_t layer, const std::string& name, size_t index) {
    const auto& packed =
        parts_.packed(attention_prefix(layer) + "to_kv", 2 * config_.width, config_.width, false);
    return builder_.weight(
        attention_prefix(layer) + name, config_.width, config_.width,
        rows_of(packed.weight, config_.width, index * config_.width, config_.width));
  }

  Memory make_memory(uint32_t layer) {
    const std::string number = ".layer" + std::to_string(memories_.size());
    Memory memory = {layer,
                     ring_states("mem" + number, config_.memory_rows),
                     {},
                     half(layer, "key", 0),
                     half(layer, "value", 1)};
    if (config_.compressed_rows > 0) {
      memory.compressed = ring_states("compressed_mem" + number, config_.compressed_rows);
    }
    return memory;
  }

  uint32_t project(const std::string& name, uint32_t x, uint32_t weight) {
    return builder_.linear(name, x, weight, GraphBuilder::kNone);
  }
  Rows project(const std::string& name, uint32_t x, uint32_t key, uint32_t value) {
    return {x, project(name + ".k", x, key), project(name + ".v", x, value)};
  }

  /// Moves all memories down by one layer; the first layer's goes to the last. `x` is any rows of the
  /// run.
  void roll(uint32_t x) {
    std::vector<Rows> recent, compressed;
    for (const Memory& memory : memories_) recent.push_back(memory.recent);
    roll("mem", recent, builder_.symbol("mem_rows", config_.memory_rows), x);
    if (config_.compressed_rows == 0) return;
    for (const Memory& memory : memories_) compressed.push_back(*memory.compressed);
    roll("compressed_mem", compressed, builder_.symbol("compressed_rows", config_.compressed_rows),
         x);
  }

  void roll(const std::string& name, const std::vector<Rows>& states, uint32_t symbol, uint32_t x) {
    schema::RingEvictOptionsT all;
    all.all = true;
    std::vector<uint32_t> held;
    for (size_t i = 0; i < states.size(); ++i) {
      held.push_back(
          builder_.ring_evict(name + ".held" + std::to_string(i), x, states[i].x, symbol, all));
    }
    schema::RingPushOptionsT replace;
    replace.replace = true;
    for (size_t i = 0; i < states.size(); ++i) {
      const Rows rows = project(name + ".moved" + std::to_string(i), held[(i + 1) % held.size()],
                                memories_[i].key, memories_[i].value);
      builder_.ring_push({rows.x, rows.k, rows.v}, {states[i].x, states[i].k, states[i].v},
                         replace);
    }
  }

  /// Keys and values of memories that move are made anew in each run.
  void push(const Rows& rows, const Rows& states, const schema::RingPushOptionsT& options) {
    if (rolls()) {
      builder_.ring_push({rows.x}, {states.x}, options);
    } else {
      builder_.ring_push({rows.x, rows.k, rows.v}, {states.x, states.k, states.v}, options);
    }
  }

  void update(const Memory& memory, const Rows& rows) {
    const std::string name = "layer" + std::to_string(memory.layer);
    const std::string convolution = attention_prefix(memory.layer) + "compress_mem_fn.conv.";
    schema::RingEvictOptionsT evict;
    evict.group = config_.ratio;
    evict.pad_front = true;
    evict.only_full = config_.segment;
    if (memory.compressed) {
      const uint32_t leaving = builder_.ring_evict(name + ".leaving", rows.x, memory.recent.x,
                                                   compressed_symbol_, evict);
      const uint32_t compressed = compress(name + ".compressed", convolution, leaving);
      const Rows projected =
          rolls() ? Rows{compressed, 0, 0}
                  : project(name + ".compressed", compressed, memory.key, memory.value);
      push(projected, *memory.compressed, {});
    } else {
      ignore_convolution(memory.layer);
    }
    schema::RingPushOptionsT full;
    full.only_full = config_.segment;
    push(rows, memory.recent, full);
  }

  uint32_t compress(const std::string& name, const std::string& prefix, uint32_t leaving) {
    const uint64_t width = config_.width, ratio = config_.ratio;
    std::vector<float> kernel = convolution_matrix(
        checkpoint_.tensor(prefix + "weight", {width, width, ratio}), width, width, ratio);
    return builder_.linear(name, leaving,
                           builder_.weight(prefix + "weight", config_.width,
                                           config_.width * config_.ratio, std::move(kernel)),
                           parts_.vector(prefix + "bias", config_.width));
  }

  /// Every layer has one, whether it compresses anything or not.
  void ignore_convolution(uint32_t layer) {
    const std::string prefix = attention_prefix(layer) + "compress_mem_fn.conv.";
    checkpoint_.ignore_tensor(prefix + "weight");
    checkpoint_.ignore_tensor(prefix + "bias");
  }

  uint32_t attend(uint32_t index, const std::string& name, uint32_t z) {
    const std::string prefix = attention_prefix(index);
    const auto found = std::find_if(memories_.begin(), memories_.end(),
                                    [&](const Memory& memory) { return memory.layer == index; });
    const bool remembers = found != memories_.end();
    const uint32_t q =
        parts_.linear(name + ".q", z, prefix + "to_q", config_.width, config_.width, false);
    const Rows own = project(name, z, remembers ? found->key : half(index, "key", 0),
                             remembers ? found->value : half(index, "value", 1));
    GraphBuilder::Attention options;
    options.heads = options.kv_heads = config_.heads;
    options.scale =
        static_cast<float>(std::sqrt(static_cast<double>(config_.heads) / config_.width));
    options.relative = positions_;
    // All memories are equally full, and that of the last layer that has one stays as it is to the end.
    const Memory& last = memories_.back();
    options.rooms.push_back(last.recent.k);
    if (last.compressed) options.rooms.push_back(last.compressed->k);
    if (remembers && found->compressed) {
      options.sources.push_back({found->compressed->k, found->compressed->v});
    }
    if (remembers) options.sources.push_back({found->recent.k, found->recent.v});
    options.sources.push_back({own.k, own.v});
    const uint32_t attended = builder_.attention(name + ".attention", q, options);
    if (!remembers) {
      ignore_convolution(index);
    } else if (index == last.layer) {
      last_rows_ = own;
    } else {
      update(*found, own);
    }
    return parts_.linear(name + ".attention.out", attended, prefix + "to_out", config_.width,
                         config_.width);
  }

  uint32_t feed_forward(uint32_t index, const std::string& name, uint32_t z) {
    const std::string prefix = "ff_layers." + std::to_string(index) + ".fn.fn.";
    const uint32_t width = config_.width, inner = 4 * width;
    const bool gated = config_.gated_feed_forward;
    const uint32_t wide =
        parts_.linear(name + ".ff.wide", z, prefix + "w1", width, gated ? 2 * inner : inner);
    uint32_t active = GraphBuilder::kNone;
    if (gated) {
      const uint32_t left = builder_.slice_columns(name + ".ff.gate", wide, 0, inner);
      active =
          builder_.multiply(name + ".ff.gated",
                            builder_.activate(name + ".ff.active", left, schema::Activation::Gelu),
                            builder_.slice_columns(name + ".ff.value", wide, inner, inner));
    } else {
      active = builder_.activate(name + ".ff.active", wide, schema::Activation::Gelu);
    }
    return parts_.linear(name + ".ff.out", active, prefix + "w2", inner, width);
  }

  /// A block's output y joins its input x.
  uint32_t join(const std::string& name, const std::string& prefix, uint32_t x, uint32_t y) {
    if (!config_.gated_residual) return builder_.add(name, x, y);
    const uint32_t width = config_.width;
    const auto gates = [&](const std::string& label, uint32_t from, const std::string& which) {
      return builder_.linear(name + label, from,
                             parts_.matrix(prefix + "gru.weight_" + which, 3 * width, width),
                             parts_.vector(prefix + "gru.bias_" + which, 3 * width));
    };
    return builder_.gru_gate(name, gates(".input_gates", y, "ih"), gates(".hidden_gates", x, "hh"),
                             x);
  }

  uint32_t norm(const std::string& name, const std::string& prefix, uint32_t x) {
    return parts_.layer_norm(name, x, prefix + "fn.norm", config_.width, 1e-5f);
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string attention = "attn_layers." + std::to_string(index) + ".";
    const std::string forward = "ff_layers." + std::to_string(index) + ".";
    const uint32_t attended = attend(index, name, norm(name + ".normed", attention, x));
    const uint32_t y = join(name + ".attended", attention, x, attended);
    builder_.debug_output(y);
    const uint32_t forwarded = feed_forward(index, name, norm(name + ".ff.normed", forward, y));
    const uint32_t out = join("hidden_states." + std::to_string(index + 1), forward, y, forwarded);
    builder_.debug_output(out);
    return out;
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  GraphBuilder builder_;
  Parts parts_;
  uint32_t compressed_symbol_ = 0;
  GraphBuilder::Relative positions_ = {};
  std::vector<Memory> memories_;
  /// New rows of the last memory, which waits for the layers without one.
  Rows last_rows_ = {};
};

}  // namespace

void import_lucidrains_compressive_transformer(const Checkpoint& checkpoint,
                                               const ImportOptions& options, Graph& graph) {
  const Config config = read_config(checkpoint);
  if (options.max_segment != 0 && options.max_segment != config.segment) {
    throw InputError("runs of at most " + std::to_string(options.max_segment) +
                     " tokens were asked for, expected seq_len of config.json, " +
                     std::to_string(config.segment) + ": memories move on by so many tokens");
  }
  Decoder(checkpoint, config, graph).build();
  write_metadata(checkpoint, graph,
                 {{"cmem_len", config.compressed_rows},
                  {"cmem_ratio", config.ratio},
                  {"depth", config.layers},
                  {"dim", config.width},
                  {"heads", config.heads},
                  {"max_segment", config.segment},
                  {"mem_len", config.memory_rows},
                  {"vocabulary", config.vocabulary}});
}

}  // namespace oxbow::convert
