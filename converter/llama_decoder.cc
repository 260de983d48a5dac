#include "converter/llama_decoder.h"

#include <cmath>
#include <numbers>

#include "converter/errors.h"

namespace oxbow::convert {
namespace {

/// Frequencies below those that turn round within the original length are divided by the factor,
/// those far above are kept, with a ramp between.
void scale_like_llama3(const Checkpoint& checkpoint, const std::string& key,
                       std::vector<float>& frequencies) {
  const double factor = checkpoint.number(key + ".factor", 1, 1e6, 8);
  const double low = checkpoint.number(key + ".low_freq_factor", 1e-3, 1e6, 1);
  const double high = checkpoint.number(key + ".high_freq_factor", 1e-3, 1e6, 4);
  const double length =
      checkpoint.size(key + ".original_max_position_embeddings", 1, kMaxSize, 8192);
  if (high <= low) {
    throw InputError("config.json: " + key + ".high_freq_factor is not more than low_freq_factor");
  }
  for (float& frequency : frequencies) {
    const double turns = length * frequency / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    frequency = static_cast<float>((1 - kept) * frequency / factor + kept * frequency);
  }
}

std::vector<float> read_frequencies(const Checkpoint& checkpoint, const ImportOptions& options,
                                    const CausalShape& shape) {
  // Newer configurations have one object for all of it.
  const bool is_new = checkpoint.has_key("rope_parameters");
  const std::string key = is_new ? "rope_parameters" : "rope_scaling";
  const double theta = checkpoint.number(is_new ? key + ".rope_theta" : "rope_theta", 1, 1e12, 1e4);
  std::vector<float> frequencies = rope_frequencies(theta, shape.head_width);

  checkpoint.require_object(key);
  const bool renamed = checkpoint.has_value(key + ".rope_type");
  if (checkpoint.has_key(key + ".factor") && !renamed && !checkpoint.has_value(key + ".type")) {
    throw InputError("config.json: key " + key +
                     ".type is missing, expected one of: default, linear, llama3, dynamic");
  }
  const std::string type = checkpoint.choice(key + (renamed ? ".rope_type" : ".type"), "default",
                                             {"default", "linear", "llama3", "dynamic"});
  checkpoint.ignore_keys({key + ".type", key + ".rope_type"});
  if (type == "linear") {
    if (!checkpoint.has_value(key + ".factor")) {
      throw InputError("config.json: key " + key + ".factor is missing, expected a number");
    }
    const double factor = checkpoint.number(key + ".factor", 1e-3, 1e6, 1);
    for (float& frequency : frequencies) frequency = static_cast<float>(frequency / factor);
  } else if (type == "llama3") {
    scale_like_llama3(checkpoint, key, frequencies);
  } else if (type == "dynamic") {
    // Nothing is scaled up to max_position_embeddings. Beyond, every new token would turn all the
    // keys that are kept.
    const uint32_t context = options.context != 0 ? options.context : shape.length;
    if (options.ring || context > shape.length) {
      throw InputError("config.json: " + key + " is dynamic, which is supported up to " +
                       shape.length_key + " tokens only: use no --ring, and --context " +
                       std::to_string(shape.length) + " at most");
    }
    checkpoint.ignore_keys({key + ".factor"});
  }
  return frequencies;
}

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const LlamaDecoder& config,
          Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        decoder_(checkpoint, options, config.shape, graph),
        prefix_(optional_prefix(checkpoint, "model.", "embed_tokens.weight")) {}

  void build() {
    GraphBuilder& builder = decoder_.builder();
    const uint32_t vocabulary = config_.shape.vocabulary, width = config_.width;
    const uint32_t words = parts().matrix(prefix_ + "embed_tokens.weight", vocabulary, width);
    uint32_t x = builder.embedding("embedded", builder.tokens(), words);
    for (uint32_t i = 0; i < config_.shape.layers; ++i) {
      decoder_.layer_input(i, x);
      x = layer(i, x);
    }
    const uint32_t last = norm("final_norm", builder.take_rows("tail", x), prefix_ + "norm");
    if (config_.tied) checkpoint_.ignore_tensor("lm_head.weight");
    decoder_.logits(last,
                    config_.tied ? words : parts().matrix("lm_head.weight", vocabulary, width));
    decoder_.describe({{"d_ff", config_.inner}, {"d_model", width}});
  }

 private:
  Parts& parts() { return decoder_.parts(); }
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    return parts().rms_norm(name, x, of, config_.width, config_.epsilon);
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string of = prefix_ + "layers." + std::to_string(index) + ".";
    const uint32_t z = norm(name + ".normed", x, of + "input_layernorm");
    const uint32_t y =
        decoder_.builder().add(name + ".attended", x, attention(index, name, z, of + "self_attn."));
    const uint32_t normed = norm(name + ".ff.normed", y, of + "post_attention_layernorm");
    return decoder_.builder().add(name + ".out", y,
                                  feed_forward(name + ".ff", normed, of + "mlp."));
  }

  uint32_t attention(uint32_t index, const std::string& name, uint32_t z, const std::string& of) {
    // Recomputed from the configuration.
    checkpoint_.ignore_tensor(of + "rotary_emb.inv_freq");
    const CausalShape& shape = config_.shape;
    const uint32_t queries = shape.heads * shape.head_width;
    const uint32_t keys = shape.kv_heads * shape.head_width;
    const bool bias = config_.attention_bias;
    const uint32_t q = parts().linear(name + ".q", z, of + "q_proj", config_.width, queries, bias);
    const uint32_t k = parts().linear(name + ".k", z, of + "k_proj", config_.width, keys, bias);
    const uint32_t v = parts().linear(name + ".v", z, of + "v_proj", config_.width, keys, bias);
    const uint32_t attended = decoder_.attend(index, q, k, v, attention_scale(shape.head_width));
    return parts().linear(name + ".attention.out", attended, of + "o_proj", queries, config_.width,
                          bias);
  }

  uint32_t feed_forward(const std::string& name, uint32_t z, const std::string& of) {
    GraphBuilder& builder = decoder_.builder();
    const uint32_t width = config_.width, inner = config_.inner;
    const bool bias = config_.feed_forward_bias;
    const uint32_t gate = builder.activate(
        name + ".gate", parts().linear(name + ".gate_in", z, of + "gate_proj", width, inner, bias),
        config_.activation);
    const uint32_t up = parts().linear(name + ".up", z, of + "up_proj", width, inner, bias);
    return parts().linear(name + ".out", builder.multiply(name + ".gated", gate, up),
                          of + "down_proj", inner, width, bias);
  }

  const Checkpoint& checkpoint_;
  const LlamaDecoder& config_;
  CausalDecoder decoder_;
  std::string prefix_;
};

}  // namespace

LlamaDecoder read_llama_decoder(const Checkpoint& checkpoint, const ImportOptions& options) {
  LlamaDecoder config;
  CausalShape& shape = config.shape;
  shape.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  shape.layers = checkpoint.size("num_hidden_layers", 1, kMaxLayers);
  config.width = checkpoint.size("hidden_size", 1, kMaxSize);
  shape.heads = checkpoint.size("num_attention_heads", 1, config.width);
  shape.kv_heads = checkpoint.size("num_key_value_heads", 1, shape.heads, shape.heads);
  require_multiple("num_attention_heads", shape.heads, "num_key_value_heads", shape.kv_heads);
  shape.head_width =
      checkpoint.size("head_dim", 2, kMaxSize / shape.heads, config.width / shape.heads);
  if (!checkpoint.has_key("head_dim")) {
    require_multiple("hidden_size", config.width, "num_attention_heads", shape.heads);
  }
  if (shape.head_width % 2 != 0) {
    throw InputError("config.json: a head has " + std::to_string(shape.head_width) +
                     " elements, expected an even number: rotary positions turn pairs");
  }
  shape.length_key = "max_position_embeddings";
  shape.length = checkpoint.size(shape.length_key, 1, kMaxSize, kDefaultContext);
  shape.frequencies = read_frequencies(checkpoint, options, shape);
  config.inner = checkpoint.size("intermediate_size", 1, kMaxSize);
  config.epsilon = static_cast<float>(checkpoint.number("rms_norm_eps", 1e-12, 1, 1e-6));
  config.activation = read_activation(checkpoint, "hidden_act", "silu");
  config.attention_bias = checkpoint.flag("attention_bias", false);
  config.feed_forward_bias = checkpoint.flag("mlp_bias", false);
  config.tied = checkpoint.flag("tie_word_embeddings", false);
  // How training was split over machines: another order of the same sums.
  checkpoint.ignore_keys({"pretraining_tp"});
  ignore_common_keys(checkpoint);
  return config;
}

void build_llama_decoder(const Checkpoint& checkpoint, const ImportOptions& options,
                         const LlamaDecoder& config, Graph& graph) {
  Builder(checkpoint, options, config, graph).build();
}

}  // namespace oxbow::convert
