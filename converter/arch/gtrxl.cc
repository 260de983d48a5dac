// GTrXL as in DI-engine (ding/torch_utils/network/gtrxl.py): Transformer-XL on rows of floats, with gates in
// place of residual sums. Memories begin as zeros, which are normed and seen.

#include <cmath>

#include "converter/blocks/parts.h"
#include "converter/blocks/transformer_xl.h"

namespace oxbow::convert {
namespace {

struct Gtrxl {
  uint32_t input, width, heads, head_width, layers, memory, depth, segment;
  schema::Activation activation;
  bool gated, embeds;
};

Gtrxl read(const Checkpoint& checkpoint, const ImportOptions& options) {
  Gtrxl config;
  config.input = checkpoint.size("input_dim", 1, kMaxSize);
  config.width = checkpoint.size("embedding_dim", 2, kMaxSize, 256);
  // Half of a position's vector are sines.
  require_multiple(checkpoint, "embedding_dim", config.width, "sine and cosine", 2);
  config.heads = checkpoint.size("head_num", 1, kMaxSize, 2);
  config.head_width = checkpoint.size("head_dim", 1, kMaxSize / config.heads, 128);
  config.layers = checkpoint.size("layer_num", 1, kMaxLayers, 3);
  config.memory = checkpoint.size("memory_len", 1, kMaxSize, 64);
  config.depth = checkpoint.size("mlp_num", 1, kMaxLayers, 2);
  config.activation = read_activation(checkpoint, "activation", "relu");
  config.gated = checkpoint.flag("gru_gating", true);
  config.embeds = checkpoint.flag("use_embedding_layer", true);
  if (!config.embeds)
    require_multiple(checkpoint, "input_dim", config.input, "embedding_dim", config.width);
  config.segment = read_segment(checkpoint, options);
  // What the gates' biases began with, and training.
  checkpoint.ignore_keys({"gru_bias", "dropout_ratio"});
  ignore_common_keys(checkpoint);
  return config;
}

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const Gtrxl& config, Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        graph_(graph),
        builder_(graph),
        parts_(checkpoint, builder_),
        attention_width_(config.heads * config.head_width) {}

  void build() {
    GraphBuilder::Entry entry;
    entry.tokens = "input";
    entry.float_width = config_.input;
    entry.max_segment = config_.segment;
    builder_.begin_entry(entry);
    graph_.model.task = schema::Task::Encode;
    checkpoint_.ignore_tensor("pos_embedding.inv_freq");

    uint32_t x = builder_.tokens();
    if (config_.embeds) {
      x = active("embedded",
                 parts_.linear("embedded.in", x, "embedding.0", config_.input, config_.width));
    }
    for (uint32_t i = 0; i < config_.layers; ++i) x = layer(i, x);
    builder_.ring_push({x}, {remember(config_.layers)});
    builder_.output("logits", x);
    write_metadata(checkpoint_, graph_,
                   {{"d_model", config_.width},
                    {"heads", config_.heads},
                    {"input_dim", config_.input},
                    {"layers", config_.layers},
                    {"max_segment", config_.segment},
                    {"memory_len", config_.memory}});
    graph_.model.metadata->time_major = true;
    graph_.model.metadata->states_time_major = true;
  }

 private:
  uint32_t active(const std::string& name, uint32_t x) {
    return builder_.activate(name, x, config_.activation);
  }

  uint32_t remember(uint32_t index) {
    const std::string name = "memory.layer" + std::to_string(index);
    ring_ = builder_.ring(name, config_.memory, {.initial_rows = config_.memory});
    return builder_.ring_state(name, ring_, config_.width);
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string of = "layers." + std::to_string(index) + ".";
    const uint32_t attended = attend(index, name, x, of);
    const uint32_t y = gate(name + ".gate1", x, attended, of + "gate1.");
    builder_.debug_output(y);
    uint32_t wide = norm(name + ".ff.normed", y, of + "layernorm2");
    for (uint32_t i = 0; i < config_.depth; ++i) {
      // Dropouts stand between the layers.
      const std::string part = name + ".ff" + std::to_string(i);
      wide =
          active(part, parts_.linear(part + ".in", wide, of + "mlp." + std::to_string(2 * i) + ".0",
                                     config_.width, config_.width));
    }
    const uint32_t out = gate(name + ".gate2", y, wide, of + "gate2.");
    builder_.debug_output(out);
    return out;
  }

  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    return parts_.layer_norm(name, x, of, config_.width, 1e-5f);
  }

  /// Half of the matrix that makes keys and values.
  struct Half {
    std::vector<float> weight, bias;
  };
  Half half(const std::string& of, uint32_t first) {
    const auto& both = parts_.packed(of, 2 * attention_width_, config_.width, true);
    return {rows_of(both.weight, config_.width, first, attention_width_),
            rows_of(both.bias, 1, first, attention_width_)};
  }

  uint32_t attend(uint32_t index, const std::string& name, uint32_t x, const std::string& of) {
    const std::string attention = of + "attention.";
    const std::string kv = attention + "attention_kv.0";
    const Half key = half(kv, 0), value = half(kv, attention_width_);
    const std::vector<float> zero = checkpoint_.vector(of + "layernorm1.bias", config_.width);
    // A memory of zeros becomes the norm's bias, and its key and value what is made of that.
    const auto initial = [&](const char* which, const Half& part) {
      std::vector<float> row = matrix_products(zero, part.weight, config_.width);
      for (size_t i = 0; i < row.size(); ++i) row[i] += part.bias[i];
      return builder_.weight(kv + which, 1, attention_width_, std::move(row));
    };
    const uint32_t memory = remember(index);
    const std::string state = "memory.layer" + std::to_string(index);
    const uint32_t keys =
        builder_.ring_state(state + ".k", ring_, attention_width_, initial(".initial_key", key));
    const uint32_t values = builder_.ring_state(state + ".v", ring_, attention_width_,
                                                initial(".initial_value", value));

    const uint32_t z = norm(name + ".normed", x, of + "layernorm1");
    const auto project = [&](const char* which, const Half& part) {
      return builder_.linear(
          name + which, z,
          builder_.weight(kv + which + ".weight", attention_width_, config_.width, part.weight),
          builder_.weight(kv + which + ".bias", 1, attention_width_, part.bias));
    };
    const uint32_t k = project(".k", key), v = project(".v", value);
    // Of the row itself: the original does not norm it here.
    const uint32_t q =
        parts_.linear(name + ".q", x, attention + "attention_q.0", config_.width, attention_width_);
    GraphBuilder::Attention options;
    options.heads = options.kv_heads = config_.heads;
    options.scale = attention_scale(config_.head_width);
    options.relative = relative(attention);
    options.sources = {{keys, values}, {k, v}};
    const uint32_t attended = builder_.attention(name + ".attention", q, options);
    builder_.ring_push({x, k, v}, {memory, keys, values});
    return active(name + ".attention.out",
                  parts_.linear(name + ".attention.linear", attended, attention + "project.0",
                                attention_width_, config_.width));
  }

  GraphBuilder::Relative relative(const std::string& of) {
    const uint32_t distances = config_.memory + config_.segment;
    std::vector<float> table = matrix_products(
        sinusoid_distances(distances, config_.width),
        checkpoint_.matrix(of + "project_pos.0.weight", attention_width_, config_.width),
        config_.width);
    const std::vector<float> offset =
        checkpoint_.vector(of + "project_pos.0.bias", attention_width_);
    for (size_t i = 0; i < table.size(); ++i) table[i] += offset[i % attention_width_];
    std::vector<float> bias = head_products(
        table, checkpoint_.matrix("v", config_.heads, config_.head_width), config_.heads);
    return {builder_.weight(of + "positions", distances, attention_width_, std::move(table)),
            builder_.weight(of + "position_bias", distances, config_.heads, std::move(bias)),
            builder_.weight(of + "u", 1, attention_width_,
                            checkpoint_.matrix("u", config_.heads, config_.head_width))};
  }

  /// What the block gave, y, let into x by gates; or their sum.
  uint32_t gate(const std::string& name, uint32_t x, uint32_t y, const std::string& of) {
    if (!config_.gated) return builder_.add(name, x, y);
    const uint32_t width = config_.width;
    const auto sum = [&](const std::string& which, uint32_t of_x, uint32_t bias) {
      const uint32_t a =
          parts_.linear(name + ".W" + which, y, of + "W" + which, width, width, false);
      const uint32_t b =
          builder_.linear(name + ".U" + which, of_x,
                          parts_.matrix(of + "U" + which + ".weight", width, width), bias);
      return builder_.add(name + "." + which, a, b);
    };
    std::vector<float> bias = checkpoint_.vector(of + "bg", width);
    for (float& value : bias) value = -value;
    const uint32_t r = builder_.activate(name + ".reset", sum("r", x, GraphBuilder::kNone),
                                         schema::Activation::Sigmoid);
    const uint32_t z = builder_.activate(
        name + ".update", sum("z", x, builder_.weight(of + "bg", 1, width, std::move(bias))),
        schema::Activation::Sigmoid);
    const uint32_t h = builder_.activate(
        name + ".new", sum("g", builder_.multiply(name + ".old", r, x), GraphBuilder::kNone),
        schema::Activation::Tanh);
    return builder_.lerp(name, x, h, z);
  }

  const Checkpoint& checkpoint_;
  const Gtrxl& config_;
  Graph& graph_;
  GraphBuilder builder_;
  Parts parts_;
  uint32_t attention_width_;
  /// Of the memory made last.
  uint32_t ring_ = 0;
};

}  // namespace

void import_gtrxl(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Gtrxl config = read(checkpoint, options);
  Builder(checkpoint, config, graph).build();
}

}  // namespace oxbow::convert
