// RecurrentGemma (Griffin) as in Hugging Face transformers: layers with a short convolution and a real-gated
// linear recurrent unit, and among them layers with attention to a window.

#include <algorithm>
#include <bit>
#include <cmath>

#include "converter/blocks/causal_decoder.h"
#include "converter/blocks/recurrent.h"
#include "converter/blocks/rope.h"
#include "host/errors.h"
#include "host/half.h"

namespace oxbow::convert {
namespace {

constexpr uint32_t kMaxTaps = 4096;

struct RecurrentGemma {
  CausalShape shape;
  AttentionHeads heads;
  uint32_t width, recurrent, inner, taps;
  float epsilon, soft_cap;
  schema::Activation activation;
  bool attention_bias, tied, scaled;
  /// Of each layer: attends, rather than recurs.
  std::vector<bool> attends;
};

std::vector<bool> read_kinds(const Checkpoint& checkpoint, uint32_t layers) {
  std::vector<std::string> kinds = checkpoint.texts("block_types");
  if (kinds.empty()) kinds = {"recurrent", "recurrent", "attention"};
  std::vector<bool> attends;
  for (uint32_t i = 0; i < layers; ++i) {
    const std::string& kind = kinds[i % kinds.size()];
    if (kind != "recurrent" && kind != "attention") {
      checkpoint.refuse("block_types has " + printable(kind) + ", expected recurrent or attention");
    }
    attends.push_back(kind == "attention");
  }
  return attends;
}

std::vector<float> read_frequencies(const Checkpoint& checkpoint, uint32_t head_width) {
  const bool is_new = checkpoint.has_value("rope_parameters");
  const std::string prefix = is_new ? "rope_parameters." : "";
  if (is_new) {
    checkpoint.choice("rope_parameters.rope_type", "default", {"default"});
  } else if (checkpoint.has_value("rope_scaling")) {
    checkpoint.refuse("rope_scaling is set, expected null");
  }
  const double theta = checkpoint.number(prefix + "rope_theta", 1, 1e12, 1e4);
  const double part = checkpoint.number(prefix + "partial_rotary_factor", 0, 1, 0.5);
  return partial_rope_frequencies(checkpoint, theta, head_width, part,
                                  prefix + "partial_rotary_factor");
}

RecurrentGemma read(const Checkpoint& checkpoint) {
  RecurrentGemma config;
  CausalShape& shape = config.shape;
  AttentionHeads& heads = config.heads;
  shape.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  shape.layers = checkpoint.size("num_hidden_layers", 1, kMaxLayers);
  config.width = checkpoint.size("hidden_size", 1, kMaxSize);
  heads.count = checkpoint.size("num_attention_heads", 1, config.width);
  heads.kv = checkpoint.size("num_key_value_heads", 1, heads.count, heads.count);
  require_multiple(checkpoint, "num_attention_heads", heads.count, "num_key_value_heads", heads.kv);
  if (!checkpoint.has_value("head_dim")) {
    require_multiple(checkpoint, "hidden_size", config.width, "num_attention_heads", heads.count);
  }
  heads.width = checkpoint.size("head_dim", 1, kMaxSize / heads.count, config.width / heads.count);
  shape.window = checkpoint.size("attention_window_size", 2, kMaxSize, 2048);
  shape.frequencies = read_frequencies(checkpoint, heads.width);
  config.recurrent = checkpoint.size("lru_width", 1, kMaxSize, config.width);
  require_multiple(checkpoint, "lru_width", config.recurrent, "num_attention_heads", heads.count);
  config.inner = checkpoint.size("intermediate_size", 2, kMaxSize);
  require_multiple(checkpoint, "intermediate_size", config.inner,
                   "the two halves of a feed-forward layer", 2);
  config.inner /= 2;
  config.taps = checkpoint.size("conv1d_width", 1, kMaxTaps, 4);
  config.epsilon = static_cast<float>(checkpoint.number("rms_norm_eps", 1e-12, 1, 1e-6));
  config.soft_cap = static_cast<float>(checkpoint.number("logits_soft_cap", 1e-3, 1e6, 30));
  config.activation = read_activation(checkpoint, "hidden_activation", "gelu_pytorch_tanh");
  config.attention_bias = checkpoint.flag("attention_bias", false);
  config.tied = checkpoint.flag("tie_word_embeddings", true);
  require_flag(checkpoint, "embeddings_scale_by_sqrt_dim", true);
  require_flag(checkpoint, "is_encoder_decoder", false);
  config.attends = read_kinds(checkpoint, shape.layers);
  checkpoint.ignore_keys({"final_w_init_variance_scale", "w_init_variance_scale", "rope_scaling"});
  ignore_common_keys(checkpoint);
  return config;
}

/// The square root of the width as bfloat16, in which the original keeps it.
float embedding_scale(uint32_t width) {
  const auto bits = std::bit_cast<uint32_t>(std::sqrt(static_cast<float>(width)));
  // Half of what is cut off, ties to even.
  return float_from_bf16(static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16));
}

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const RecurrentGemma& config,
          Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        graph_(graph),
        decoder_(checkpoint, options, config.shape, config.heads, graph) {}

  void build() {
    const uint32_t vocabulary = config_.shape.vocabulary, width = config_.width;
    const std::string prefix = optional_prefix(checkpoint_, "model.", "embed_tokens.weight");
    const uint32_t words = parts().matrix(prefix + "embed_tokens.weight", vocabulary, width);
    uint32_t x = builder().embedding("embedded", builder().tokens(), words, embedding_scale(width));
    for (uint32_t i = 0; i < config_.shape.layers; ++i) {
      decoder_.layer_input(i, x);
      x = layer(i, x, prefix + "layers." + std::to_string(i) + ".");
    }
    const uint32_t last = norm("last", builder().take_rows("tail", x), prefix + "final_norm");
    decoder_.layer_input(config_.shape.layers, last);
    builder().logits(
        last,
        head_matrix(checkpoint_, parts(), config_.tied, words, "lm_head.weight", vocabulary, width),
        GraphBuilder::kNone, config_.soft_cap);
    decoder_.describe(
        {{"d_ff", config_.inner}, {"d_model", width}, {"lru_width", config_.recurrent}});
    graph_.model.metadata->transposed_states = transposed_;
  }

 private:
  GraphBuilder& builder() { return decoder_.builder(); }
  Parts& parts() { return decoder_.parts(); }

  /// Its weights are stored without the 1 that is added to them.
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    std::vector<float> weight = checkpoint_.vector(of + ".weight", config_.width);
    for (float& value : weight) value += 1.0f;
    return builder().rms_norm(name, x,
                              builder().weight(of + ".weight", 1, config_.width, std::move(weight)),
                              config_.epsilon);
  }

  uint32_t layer(uint32_t index, uint32_t x, const std::string& of) {
    const std::string name = "layer" + std::to_string(index);
    const uint32_t z = norm(name + ".normed", x, of + "temporal_pre_norm");
    const std::string block = of + "temporal_block.";
    const uint32_t y = builder().add(name + ".mixed", x,
                                     config_.attends[index] ? attention(index, name, z, block)
                                                            : recurrence(index, name, z, block));
    const uint32_t normed = norm(name + ".ff.normed", y, of + "channel_pre_norm");
    const std::string mlp = of + "mlp_block.";
    return builder().add(
        name + ".out", y,
        gated_feed_forward(builder(), parts(), name + ".ff", normed,
                           {mlp + "gate_proj", mlp + "up_proj", mlp + "down_proj", config_.width,
                            config_.inner, config_.activation, true}));
  }

  uint32_t attention(uint32_t index, const std::string& name, uint32_t z, const std::string& of) {
    const AttentionHeads& heads = config_.heads;
    const uint32_t queries = heads.queries();
    const uint32_t keys = heads.keys();
    const bool bias = config_.attention_bias;
    checkpoint_.ignore_tensor(of + "rotary_emb.inv_freq");
    const uint32_t q = parts().linear(name + ".q", z, of + "q_proj", config_.width, queries, bias);
    const uint32_t k = parts().linear(name + ".k", z, of + "k_proj", config_.width, keys, bias);
    const uint32_t v = parts().linear(name + ".v", z, of + "v_proj", config_.width, keys, bias);
    const uint32_t attended = decoder_.attend(index, q, k, v, attention_scale(heads.width));
    return parts().linear(name + ".attention.out", attended, of + "o_proj", queries, config_.width);
  }

  uint32_t recurrence(uint32_t index, const std::string& name, uint32_t z, const std::string& of) {
    const uint32_t width = config_.recurrent;
    const std::string state = "state.layer" + std::to_string(index);
    transposed_.push_back(state + ".conv");
    const uint32_t y = builder().activate(
        name + ".y", parts().linear(name + ".y.in", z, of + "linear_y", config_.width, width),
        config_.activation);
    const uint32_t u = parts().causal_convolution(
        name + ".u", parts().linear(name + ".x", z, of + "linear_x", config_.width, width),
        of + "conv_1d", width, config_.taps, true, state + ".conv");

    const std::string unit = of + "rg_lru.";
    std::vector<float> rates = checkpoint_.vector(unit + "recurrent_param", width);
    for (float& rate : rates) {
      rate = -8.0f * static_cast<float>(std::log1p(std::exp(-std::abs(double{rate}))) +
                                        std::max(double{rate}, 0.0));
    }
    schema::ScanOptionsT options;
    options.rule = schema::ScanRule::GatedLinear;
    const std::vector<uint32_t> parts_of_u = slices(name + ".u", u);
    const uint32_t h =
        builder().scan(name + ".h", options,
                       {u, gate(name + ".input_gate", parts_of_u, unit + "input_gate_"),
                        gate(name + ".recurrent_gate", parts_of_u, unit + "recurrent_gate_"),
                        builder().weight(unit + "rate", 1, width, std::move(rates))},
                       {builder().state(state + ".lru", 1, width)})[0];
    return parts().linear(name + ".recurrent.out", builder().multiply(name + ".hy", h, y),
                          of + "linear_out", width, config_.width);
  }

  /// The heads' parts of a row.
  std::vector<uint32_t> slices(const std::string& name, uint32_t x) {
    const uint32_t heads = config_.heads.count, width = config_.recurrent / heads;
    if (heads == 1) return {x};
    std::vector<uint32_t> out;
    for (uint32_t head = 0; head < heads; ++head) {
      out.push_back(builder().slice_columns(name + std::to_string(head), x, head * width, width));
    }
    return out;
  }

  /// A sigmoid of a linear layer for each head, whose matrices are [input, output].
  uint32_t gate(const std::string& name, const std::vector<uint32_t>& parts_of_u,
                const std::string& of) {
    const uint32_t heads = config_.heads.count, width = config_.recurrent / heads;
    const std::vector<float> weight = checkpoint_.tensor(of + "weight", {heads, width, width});
    const std::vector<float> bias = checkpoint_.matrix(of + "bias", heads, width);
    std::vector<uint32_t> gates;
    for (uint32_t head = 0; head < heads; ++head) {
      const std::string suffix = std::to_string(head);
      const uint32_t matrix = builder().weight(
          of + "weight" + suffix, width, width,
          transposed(rows_of(weight, width, size_t{head} * width, width), width, width));
      const uint32_t offset =
          builder().weight(of + "bias" + suffix, 1, width, rows_of(bias, width, head, 1));
      gates.push_back(builder().activate(
          name + suffix, builder().linear(name + suffix + ".in", parts_of_u[head], matrix, offset),
          schema::Activation::Sigmoid));
    }
    return heads == 1 ? gates[0] : builder().concat_columns(name, gates);
  }

  const Checkpoint& checkpoint_;
  const RecurrentGemma& config_;
  Graph& graph_;
  CausalDecoder decoder_;
  std::vector<std::string> transposed_;
};

}  // namespace

void import_recurrent_gemma(const Checkpoint& checkpoint, const ImportOptions& options,
                            Graph& graph) {
  const RecurrentGemma config = read(checkpoint);
  Builder(checkpoint, options, config, graph).build();
}

}  // namespace oxbow::convert
