#include "converter/blocks/decoder_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "converter/blocks/rope.h"
#include "host/errors.h"

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
    checkpoint.refuse(key + ".high_freq_factor is not more than low_freq_factor");
  }
  for (float& frequency : frequencies) {
    const double turns = length * frequency / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    frequency = static_cast<float>((1 - kept) * frequency / factor + kept * frequency);
  }
}

/// YaRN: pairs that turn often within the original length are kept, those that turn seldom are slowed down by the
/// factor, with a ramp between, whose ends are numbers of turns.
float scale_like_yarn(const Checkpoint& checkpoint, const std::string& key, double theta,
                      double length, double longest, std::vector<float>& frequencies) {
  const double factor = checkpoint.number(key + ".factor", 1, 1e6, std::max(longest / length, 1.0));
  const double width = 2.0 * static_cast<double>(frequencies.size());
  const auto pair_of = [&](double turns) {
    return width * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  double first = pair_of(checkpoint.number(key + ".beta_fast", 1e-3, 1e6, 32));
  double last = pair_of(checkpoint.number(key + ".beta_slow", 1e-3, 1e6, 1));
  if (checkpoint.flag(key + ".truncate", true)) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, width - 1);
  if (first == last) last += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double slowed = std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
    frequencies[i] =
        static_cast<float>(frequencies[i] / factor * slowed + frequencies[i] * (1 - slowed));
  }
  const auto gain = [&](double of) { return factor <= 1 ? 1 : 0.1 * of * std::log(factor) + 1; };
  const double some = checkpoint.number(key + ".mscale", 0, 1e6, 0);
  const double all = checkpoint.number(key + ".mscale_all_dim", 0, 1e6, 0);
  return static_cast<float>(checkpoint.number(
      key + ".attention_factor", 0, 1e6, some != 0 && all != 0 ? gain(some) / gain(all) : gain(1)));
}

/// LongRoPE: each pair has a divisor of its own, another one in texts beyond the original length.
void scale_like_longrope(const Checkpoint& checkpoint, const std::string& key,
                         const ImportOptions& options, const CausalShape& shape, uint32_t length,
                         Rope& rope) {
  const bool is_long = options.context > length;
  for (const bool kind : {false, true}) {
    const std::string name = key + (kind ? ".long_factor" : ".short_factor");
    const std::vector<double> divisors = checkpoint.numbers(name);
    const bool good =
        divisors.size() == rope.frequencies.size() &&
        std::all_of(divisors.begin(), divisors.end(), [](double d) { return d > 0 && d < 1e9; });
    if (!good) {
      checkpoint.refuse(name + " has " + std::to_string(divisors.size()) + " numbers, expected " +
                        std::to_string(rope.frequencies.size()) + " above 0");
    } else if (kind == is_long) {
      for (size_t i = 0; i < divisors.size(); ++i) {
        rope.frequencies[i] = static_cast<float>(rope.frequencies[i] / divisors[i]);
      }
    }
  }
  const double factor =
      checkpoint.number(key + ".factor", 1e-3, 1e6, static_cast<double>(shape.length) / length);
  const double gain = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(length));
  rope.gain = static_cast<float>(checkpoint.number(key + ".attention_factor", 0, 1e6, gain));
  if (!is_long && length < shape.length) rope.length = length;
}

}  // namespace

Rope read_rope(const Checkpoint& checkpoint, const ImportOptions& options, const CausalShape& shape,
               uint32_t head_width, const RopeKeys& keys) {
  // Newer configurations have one object for all of it.
  const bool is_new = !keys.object.empty() || checkpoint.has_key("rope_parameters");
  const std::string key = !keys.object.empty() ? keys.object
                          : is_new             ? "rope_parameters"
                                               : "rope_scaling";
  const auto place = [&](const std::string& name, const std::string& old) {
    const std::string inner = key + "." + name;
    return !keys.object.empty() || (is_new && checkpoint.has_value(inner)) ? inner : old;
  };
  const double theta =
      checkpoint.number(place("rope_theta", keys.theta), 1, 1e12, keys.default_theta);
  const std::string part_key = place("partial_rotary_factor", keys.part);
  const double least = keys.part.empty() ? 1 : 0;
  const double part =
      part_key.empty() ? 1 : checkpoint.number(part_key, least, 1, keys.default_part);
  Rope rope;
  std::vector<float>& frequencies = rope.frequencies;
  frequencies = partial_rope_frequencies(checkpoint, theta, head_width, part, part_key);

  checkpoint.require_object(key);
  const bool renamed = checkpoint.has_value(key + ".rope_type");
  std::vector<std::string> types = {"default", "linear", "llama3", "dynamic"};
  // su is the first name of longrope.
  if (keys.for_long_texts) types.insert(types.end(), {"yarn", "longrope", "su"});
  if (checkpoint.has_key(key + ".factor") && !renamed && !checkpoint.has_value(key + ".type")) {
    checkpoint.refuse("key " + key +
                      ".type is missing, expected one of: default, linear, llama3, dynamic");
  }
  const std::string type =
      checkpoint.choice(key + (renamed ? ".rope_type" : ".type"), "default", types);
  checkpoint.ignore_keys({key + ".type", key + ".rope_type"});
  const auto original_length = [&] {
    const std::string name = "original_max_position_embeddings", inner = key + "." + name;
    return checkpoint.size(checkpoint.has_value(inner) ? inner : name, 2, kMaxSize, shape.length);
  };
  if (type == "linear") {
    if (!checkpoint.has_value(key + ".factor")) {
      checkpoint.refuse("key " + key + ".factor is missing, expected a number");
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
      checkpoint.refuse(key + " is dynamic, which is supported up to " + shape.length_key +
                        " tokens only: use no --ring, and --context " +
                        std::to_string(shape.length) + " at most");
    }
    checkpoint.ignore_keys({key + ".factor"});
  } else if (type == "yarn") {
    rope.gain =
        scale_like_yarn(checkpoint, key, theta, original_length(), shape.length, frequencies);
  } else if (type == "longrope" || type == "su") {
    scale_like_longrope(checkpoint, key, options, shape, original_length(), rope);
  }
  return rope;
}

void set_rope(CausalShape& shape, Rope rope) {
  shape.frequencies = std::move(rope.frequencies);
  shape.rotary_gain = rope.gain;
  if (rope.length == 0) return;
  const std::string most = std::to_string(shape.length);
  shape.note = "positions turn as in texts of up to " + std::to_string(rope.length) +
               " tokens; in longer ones, of up to " + most +
               ", the model turns them otherwise from the first token on: --context " + most +
               " does that in all texts";
  shape.length = rope.length;
  shape.length_key = "original_max_position_embeddings";
}

Decoder read_decoder(const Checkpoint& checkpoint, uint32_t head_width) {
  Decoder decoder;
  CausalShape& shape = decoder.shape;
  TransformerLayer& layer = decoder.layer;
  shape.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  shape.layers = checkpoint.size("num_hidden_layers", 1, kMaxLayers);
  layer.width = checkpoint.size("hidden_size", 1, kMaxSize);
  AttentionHeads& heads = layer.heads;
  heads.count = checkpoint.size("num_attention_heads", 1, layer.width);
  heads.kv = checkpoint.size("num_key_value_heads", 1, heads.count, heads.count);
  require_multiple(checkpoint, "num_attention_heads", heads.count, "num_key_value_heads", heads.kv);
  const bool divides = head_width == 0;
  heads.width = checkpoint.size("head_dim", 2, kMaxSize / heads.count,
                                divides ? layer.width / heads.count : head_width);
  if (divides && !checkpoint.has_key("head_dim")) {
    require_multiple(checkpoint, "hidden_size", layer.width, "num_attention_heads", heads.count);
  }
  shape.length_key = "max_position_embeddings";
  shape.length = checkpoint.size(shape.length_key, 1, kMaxSize, kDefaultContext);
  layer.inner = checkpoint.size("intermediate_size", 1, kMaxSize);
  ignore_common_keys(checkpoint);
  return decoder;
}

Decoder read_llama_like(const Checkpoint& checkpoint, const ImportOptions& options,
                        uint32_t head_width, const RopeKeys& rope) {
  Decoder decoder = read_decoder(checkpoint, head_width);
  TransformerLayer& layer = decoder.layer;
  RopeKeys keys = rope;
  keys.for_long_texts = true;
  set_rope(decoder.shape, read_rope(checkpoint, options, decoder.shape, layer.heads.width, keys));
  layer.norm = {.rms = true,
                .epsilon = static_cast<float>(checkpoint.number("rms_norm_eps", 1e-12, 1, 1e-6))};
  layer.activation = read_activation(checkpoint, "hidden_act", "silu");
  layer.qkv_bias = layer.out_bias = Bias::kNone;
  layer.gate_bias = layer.up_bias = layer.down_bias = Bias::kNone;
  decoder.tied = checkpoint.flag("tie_word_embeddings", false);
  decoder.names.prefix = optional_prefix(checkpoint, "model.", "embed_tokens.weight");
  layer.names = {.attention_norm = "input_layernorm",
                 .feed_forward_norm = "post_attention_layernorm",
                 .q = "self_attn.q_proj",
                 .k = "self_attn.k_proj",
                 .v = "self_attn.v_proj",
                 .attention_out = "self_attn.o_proj",
                 .gate = "mlp.gate_proj",
                 .up = "mlp.up_proj",
                 .down = "mlp.down_proj",
                 // Recomputed from the configuration.
                 .ignored = {"self_attn.rotary_emb.inv_freq"}};
  return decoder;
}

std::vector<bool> read_layer_types(const Checkpoint& checkpoint,
                                   const std::vector<bool>& fallback) {
  const std::vector<std::string> types = checkpoint.texts("layer_types");
  if (types.empty()) return fallback;
  if (types.size() != fallback.size()) {
    checkpoint.refuse("layer_types has " + std::to_string(types.size()) +
                      " entries, expected one for each of " + std::to_string(fallback.size()) +
                      " layers");
    return fallback;
  }
  std::vector<bool> sees_all;
  for (const std::string& type : types) {
    if (type != "full_attention" && type != "sliding_attention") {
      checkpoint.refuse("layer_types has " + printable(type) +
                        ", expected full_attention or sliding_attention");
    }
    sees_all.push_back(type == "full_attention");
  }
  return sees_all;
}

void set_windows(CausalShape& shape, uint32_t window, std::vector<bool> sees_all) {
  const auto all = std::count(sees_all.begin(), sees_all.end(), true);
  if (all == std::ssize(sees_all)) return;
  shape.window = window;
  if (all != 0) shape.sees_all = std::move(sees_all);
}

void read_qwen_windows(const Checkpoint& checkpoint, CausalShape& shape) {
  uint32_t window = 0, first = shape.layers;
  if (checkpoint.flag("use_sliding_window", false)) {
    // null means none.
    const uint32_t fallback = checkpoint.has_key("sliding_window") ? 0 : 4096;
    window = checkpoint.size("sliding_window", 1, kMaxSize, fallback);
    if (window != 0) first = checkpoint.size("max_window_layers", 0, kMaxSize, 28);
  }
  // Without effect otherwise, whatever their values.
  checkpoint.ignore_keys({"sliding_window", "max_window_layers"});
  std::vector<bool> sees_all(shape.layers);
  for (uint32_t i = 0; i < shape.layers; ++i) sees_all[i] = i < first;
  sees_all = read_layer_types(checkpoint, sees_all);
  if (window == 0 && std::count(sees_all.begin(), sees_all.end(), false) != 0) {
    checkpoint.refuse(
        "layer_types has sliding_attention, expected use_sliding_window to be true "
        "and "
        "sliding_window to be a number");
    return;
  }
  set_windows(shape, window, std::move(sees_all));
}

}  // namespace oxbow::convert
