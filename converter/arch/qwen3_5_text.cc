// The text half of Qwen3.5 as in Hugging Face transformers: layers of gated delta nets (Yang et al. 2024), and between
// them layers of attention whose result is gated.

#include <cmath>

#include "converter/blocks/causal_decoder.h"
#include "converter/blocks/recurrent.h"
#include "converter/blocks/rope.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// Real models have keys of 128.
constexpr uint32_t kLeastWidthOfInt8Keys = 32;

struct Qwen {
  CausalShape shape;
  AttentionHeads heads;
  uint32_t width, inner;
  float epsilon;
  schema::Activation activation;
  bool attention_bias, tied;
  /// For each layer: attention, or a delta net.
  std::vector<bool> attends;
  uint32_t taps, key_heads, value_heads, key_width, value_width;

  uint32_t keys() const { return key_heads * key_width; }
  uint32_t values() const { return value_heads * value_width; }
};

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const Qwen& config,
          Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        graph_(graph),
        decoder_(checkpoint, options, config.shape, config.heads, graph),
        prefix_(optional_prefix(checkpoint, "model.", "embed_tokens.weight")) {}

  void build() {
    const uint32_t vocabulary = config_.shape.vocabulary, width = config_.width;
    const uint32_t words = parts().matrix(prefix_ + "embed_tokens.weight", vocabulary, width);
    uint32_t x = builder().embedding("embedded", builder().tokens(), words);
    for (uint32_t i = 0; i < config_.shape.layers; ++i) {
      decoder_.layer_input(i, x);
      x = layer(i, x);
    }
    const uint32_t last = norm("final_norm", builder().take_rows("tail", x), prefix_ + "norm");
    decoder_.logits(last, head_matrix(checkpoint_, parts(), config_.tied, words, "lm_head.weight",
                                      vocabulary, width));
    decoder_.describe({{"d_ff", config_.inner},
                       {"d_model", width},
                       {"linear_key_heads", config_.key_heads},
                       {"linear_value_heads", config_.value_heads}});
    graph_.model.metadata->transposed_states = transposed_;
  }

 private:
  GraphBuilder& builder() { return decoder_.builder(); }
  Parts& parts() { return decoder_.parts(); }

  /// Norms are stored as what is added to 1.
  uint32_t norm_weight(const std::string& of, uint32_t width) {
    std::vector<float> values = checkpoint_.vector(of + ".weight", width);
    for (float& value : values) value += 1.0f;
    return row_weight(builder(), of + ".weight", std::move(values));
  }
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    return builder().rms_norm(name, x, norm_weight(of, config_.width), config_.epsilon);
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string of = prefix_ + "layers." + std::to_string(index) + ".";
    const uint32_t z = norm(name + ".normed", x, of + "input_layernorm");
    const uint32_t mixed = config_.attends[index] ? attention(index, name, z, of + "self_attn.")
                                                  : delta_net(name, z, of + "linear_attn.");
    const uint32_t y = builder().add(name + ".mixed", x, mixed);
    const uint32_t normed = norm(name + ".ff.normed", y, of + "post_attention_layernorm");
    return builder().add(name + ".out", y, feed_forward(name + ".ff", normed, of + "mlp."));
  }

  uint32_t attention(uint32_t index, const std::string& name, uint32_t z, const std::string& of) {
    const AttentionHeads& own = config_.heads;
    const uint32_t queries = own.queries(), keys = own.keys();
    const auto normed = [&](const char* which, uint32_t rows, uint32_t heads) {
      return builder().rms_norm(name + "." + which, rows, norm_weight(of + which, own.width),
                                config_.epsilon, heads);
    };
    const uint32_t q = normed("q_norm", query_part(name + ".q", z, of + "q_proj", 0), own.count);
    const uint32_t k = normed(
        "k_norm",
        parts().linear(name + ".k", z, of + "k_proj", config_.width, keys, config_.attention_bias),
        own.kv);
    const uint32_t v =
        parts().linear(name + ".v", z, of + "v_proj", config_.width, keys, config_.attention_bias);
    const uint32_t attended = decoder_.attend(index, q, k, v, attention_scale(own.width));
    const uint32_t gate =
        builder().activate(name + ".gate", query_part(name + ".gate_in", z, of + "q_proj", 1),
                           schema::Activation::Sigmoid);
    return parts().linear(name + ".attention.out",
                          builder().multiply(name + ".gated", attended, gate), of + "o_proj",
                          queries, config_.width, config_.attention_bias);
  }

  /// Queries (0) or gates (1): rows [head][part][head width] of a packed matrix.
  uint32_t query_part(const std::string& name, uint32_t z, const std::string& of, uint32_t part) {
    const uint32_t width = config_.width, head_width = config_.heads.width;
    const uint32_t all = 2 * config_.heads.count * head_width;
    const auto& packed = parts().packed(of, all, width, config_.attention_bias);
    std::vector<float> matrix, bias;
    for (uint32_t head = 0; head < config_.heads.count; ++head) {
      const size_t first = size_t{2 * head + part} * head_width;
      const std::vector<float> rows = rows_of(packed.weight, width, first, head_width);
      matrix.insert(matrix.end(), rows.begin(), rows.end());
      if (!config_.attention_bias) continue;
      const std::vector<float> biases = rows_of(packed.bias, 1, first, head_width);
      bias.insert(bias.end(), biases.begin(), biases.end());
    }
    const std::string suffix = "." + std::to_string(part);
    return builder().linear(
        name, z, builder().weight(of + ".weight" + suffix, all / 2, width, std::move(matrix)),
        config_.attention_bias ? row_weight(builder(), of + ".bias" + suffix, std::move(bias))
                               : GraphBuilder::kNone);
  }

  uint32_t delta_net(const std::string& name, uint32_t z, const std::string& of) {
    const uint32_t keys = config_.keys(), values = config_.values(), channels = 2 * keys + values;
    const uint32_t heads = config_.value_heads, width = config_.width;
    const auto project = [&](const char* which, uint32_t out) {
      return parts().linear(name + "." + which, z, of + which, width, out, false);
    };
    const std::string state = "state." + name;
    // Keys and queries are divided by their length. Over so few elements rounding errors do not cancel, and a short
    // row's grow without bound.
    if (config_.key_width < kLeastWidthOfInt8Keys) graph_.precise.insert(of + "in_proj_qkv.weight");
    const uint32_t mixed = builder().activate(
        name + ".qkv",
        parts().causal_convolution(name + ".conv", project("in_proj_qkv", channels), of + "conv1d",
                                   channels, config_.taps, false, state + ".conv"),
        config_.activation);
    transposed_.push_back(state + ".conv");

    GraphBuilder::Recurrence rule;
    rule.heads = heads;
    rule.key_heads = config_.key_heads;
    const auto unit = [&](const char* suffix, uint32_t first, double factor) {
      return unit_heads(builder(), name + suffix,
                        builder().slice_columns(name + suffix + "_in", mixed, first, keys),
                        config_.key_heads, config_.key_width, 1e-6, factor);
    };
    rule.q = unit(".q", 0, 1.0 / std::sqrt(static_cast<double>(config_.key_width)));
    rule.k = unit(".k", keys, 1.0);
    rule.v = builder().slice_columns(name + ".v", mixed, 2 * keys, values);
    rule.factor = builder().activate(name + ".beta", project("in_proj_b", heads),
                                     schema::Activation::Sigmoid);
    rule.delta = true;
    rule.decay = decay(name, z, of);
    rule.state =
        builder().state(state + ".recurrent", heads * config_.key_width, config_.value_width);
    const uint32_t read = builder().recurrence(name + ".read", rule);
    const uint32_t normed = builder().rms_norm(
        name + ".read.normed", read, parts().vector(of + "norm.weight", config_.value_width),
        config_.epsilon, heads);
    const uint32_t gate =
        builder().activate(name + ".gate", project("in_proj_z", values), schema::Activation::Silu);
    return parts().linear(name + ".mixed_out", builder().multiply(name + ".gated", normed, gate),
                          of + "out_proj", values, width, false);
  }

  /// exp(-exp(A_log) softplus(a + dt_bias))
  uint32_t decay(const std::string& name, uint32_t z, const std::string& of) {
    const uint32_t heads = config_.value_heads;
    const uint32_t steps = builder().activate(
        name + ".steps",
        builder().linear(name + ".steps_in", z,
                         parts().matrix(of + "in_proj_a.weight", heads, config_.width),
                         parts().vector(of + "dt_bias", heads)),
        schema::Activation::Softplus);
    std::vector<float> rates = checkpoint_.vector(of + "A_log", heads);
    for (float& rate : rates) rate = static_cast<float>(-std::exp(double{rate}));
    return builder().activate(name + ".decay",
                              builder().multiply(name + ".log_decay", steps,
                                                 row_weight(builder(), of + "A", std::move(rates))),
                              schema::Activation::Exp);
  }

  uint32_t feed_forward(const std::string& name, uint32_t z, const std::string& of) {
    const uint32_t width = config_.width, inner = config_.inner;
    const auto project = [&](const char* which, uint32_t x, uint32_t in, uint32_t out) {
      return parts().linear(name + "." + which, x, of + which, in, out, false);
    };
    const uint32_t gate = builder().activate(name + ".gate", project("gate_proj", z, width, inner),
                                             config_.activation);
    const uint32_t gated =
        builder().multiply(name + ".gated", gate, project("up_proj", z, width, inner));
    return project("down_proj", gated, inner, width);
  }

  const Checkpoint& checkpoint_;
  const Qwen& config_;
  Graph& graph_;
  CausalDecoder decoder_;
  std::string prefix_;
  std::vector<std::string> transposed_;
};

std::vector<bool> read_layer_types(const Checkpoint& checkpoint, uint32_t layers) {
  std::vector<bool> attends;
  const uint32_t interval = checkpoint.size("full_attention_interval", 1, kMaxLayers, 4);
  for (const std::string& type : checkpoint.texts("layer_types")) {
    if (type != "linear_attention" && type != "full_attention") {
      checkpoint.refuse("layer_types has " + printable(type) +
                        ", expected linear_attention or full_attention");
    }
    attends.push_back(type == "full_attention");
  }
  if (attends.empty()) {
    for (uint32_t i = 0; i < layers; ++i) attends.push_back((i + 1) % interval == 0);
  }
  if (attends.size() != layers) {
    checkpoint.refuse("layer_types has " + std::to_string(attends.size()) +
                      " elements, expected num_hidden_layers, " + std::to_string(layers));
    attends.resize(layers);
  }
  return attends;
}

std::vector<float> read_frequencies(const Checkpoint& checkpoint, uint32_t head_width) {
  checkpoint.require_object("rope_parameters");
  checkpoint.require_object("rope_scaling");
  const bool is_new = checkpoint.has_value("rope_parameters");
  const std::string of = is_new ? "rope_parameters." : "";
  const double theta = checkpoint.number(of + "rope_theta", 1, 1e12, 1e4);
  // Older files have it at the top.
  const double top = checkpoint.number("partial_rotary_factor", 0, 1, 0.25);
  const double part = checkpoint.number(of + "partial_rotary_factor", 0, 1, top);
  for (const char* object : {"rope_parameters", "rope_scaling"}) {
    const std::string key = object;
    for (const char* type : {".rope_type", ".type"}) {
      checkpoint.choice(key + type, "default", {"default", "mrope"});
    }
    // All axes of a text's positions are the same.
    checkpoint.ignore_keys({key + ".mrope_section", key + ".mrope_interleaved"});
  }
  return partial_rope_frequencies(checkpoint, theta, head_width, part,
                                  of + "partial_rotary_factor");
}

Qwen read(const Checkpoint& checkpoint) {
  Qwen config;
  CausalShape& shape = config.shape;
  AttentionHeads& heads = config.heads;
  shape.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  shape.layers = checkpoint.size("num_hidden_layers", 1, kMaxLayers);
  config.width = checkpoint.size("hidden_size", 1, kMaxSize);
  heads.count = checkpoint.size("num_attention_heads", 1, kMaxSize);
  heads.kv = checkpoint.size("num_key_value_heads", 1, heads.count, heads.count);
  require_multiple(checkpoint, "num_attention_heads", heads.count, "num_key_value_heads", heads.kv);
  heads.width = checkpoint.size("head_dim", 2, kMaxSize / heads.count, 256);
  shape.length_key = "max_position_embeddings";
  shape.length = checkpoint.size(shape.length_key, 1, kMaxSize, kDefaultContext);
  shape.frequencies = read_frequencies(checkpoint, heads.width);
  config.inner = checkpoint.size("intermediate_size", 1, kMaxSize);
  config.epsilon = static_cast<float>(checkpoint.number("rms_norm_eps", 1e-12, 1, 1e-6));
  config.activation = read_activation(checkpoint, "hidden_act", "silu");
  config.attention_bias = checkpoint.flag("attention_bias", false);
  config.tied = checkpoint.flag("tie_word_embeddings", false);
  require_flag(checkpoint, "attn_output_gate", true);
  config.attends = read_layer_types(checkpoint, shape.layers);
  config.taps = checkpoint.size("linear_conv_kernel_dim", 1, 1 << 10, 4);
  config.key_heads = checkpoint.size("linear_num_key_heads", 1, 1 << 10, 16);
  config.value_heads = checkpoint.size("linear_num_value_heads", 1, 1 << 10, 32);
  config.key_width = checkpoint.size("linear_key_head_dim", 1, 1 << 10, 128);
  config.value_width = checkpoint.size("linear_value_head_dim", 1, 1 << 10, 128);
  require_multiple(checkpoint, "linear_num_value_heads", config.value_heads, "linear_num_key_heads",
                   config.key_heads);
  // Types of numbers, and layers that predict further tokens.
  checkpoint.ignore_keys({"mamba_ssm_dtype", "mtp_num_hidden_layers",
                          "mtp_use_dedicated_embeddings", "mlp_only_layers"});
  ignore_common_keys(checkpoint);
  return config;
}

}  // namespace

void import_qwen3_5_text(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Qwen config = read(checkpoint);
  Builder(checkpoint, options, config, graph).build();
}

}  // namespace oxbow::convert
