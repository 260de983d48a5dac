#include "converter/formats/gguf_rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "converter/blocks/rope.h"
#include "converter/formats/limits.h"
#include "host/errors.h"
#include "host/number_text.h"

namespace oxbow::convert {
namespace {

constexpr const char* kFactors = "rope_freqs.weight";
constexpr const char* kShortFactors = "rope_factors_short.weight";
constexpr const char* kLongFactors = "rope_factors_long.weight";

// All that Llama 3 and its successors use; the file does not tell them.
constexpr double kLowFactor = 1;
constexpr double kHighFactor = 4;
// Factors are computed in single precision, by several steps.
constexpr double kTolerance = 1e-4;
constexpr uint32_t kMinLength = 256;
constexpr uint32_t kMaxLength = 1u << 20;

/// What llama.cpp's converter divides a frequency by when the model was trained with `length` tokens
/// and stretched by `factor`.
double llama3_factor(double frequency, double factor, double length) {
  const double turns = length * frequency / (2 * std::numbers::pi);
  const double kept = std::clamp((turns - kLowFactor) / (kHighFactor - kLowFactor), 0.0, 1.0);
  return 1 / ((1 - kept) / factor + kept);
}

/// The file has one factor for each frequency, a configuration the rule they follow. The rule is
/// found by trying lengths: whichever fits gives the same frequencies.
nlohmann::json scaling_of(const Gguf& gguf, const StoredTensor& tensor,
                          const std::vector<float>& frequencies) {
  const std::string where = gguf.path() + ": tensor " + kFactors;
  if (tensor.dtype != Dtype::kF32 || tensor.shape.size() != 1 ||
      tensor.count != frequencies.size()) {
    throw InputError(where + " is " + tensor.describe() + ", expected F32[" +
                     std::to_string(frequencies.size()) + "]");
  }
  const std::vector<float> factors = to_floats(tensor);
  const double factor = factors.back();
  if (std::all_of(factors.begin(), factors.end(), [](float f) { return f == 1; })) return nullptr;
  for (uint32_t length = kMinLength; factor > 1 && length <= kMaxLength; length *= 2) {
    bool fits = true;
    for (size_t i = 0; fits && i < factors.size(); ++i) {
      const double expected = llama3_factor(frequencies[i], factor, length);
      fits = std::abs(factors[i] - expected) <= kTolerance * expected;
    }
    if (!fits) continue;
    return {{"rope_type", "llama3"},
            {"factor", factor},
            {"low_freq_factor", kLowFactor},
            {"high_freq_factor", kHighFactor},
            {"original_max_position_embeddings", length}};
  }
  throw InputError(where +
                   " scales rotary positions by another rule than that of Llama 3, which is "
                   "not supported");
}

/// YaRN; what the file does not say is as the original has it.
nlohmann::json yarn_of(const GgufKeys& keys) {
  const double factor = keys.number("rope.scaling.factor");
  const auto is = [&](const char* key, double fallback, double expected) {
    if (keys.number(key, fallback) != expected) keys.fail(key, number_text(expected));
  };
  is("rope.scaling.yarn_log_multiplier", 0, 0);
  is("rope.scaling.yarn_ext_factor", 1, 1);
  nlohmann::json config = {{"rope_type", "yarn"},
                           {"factor", factor},
                           {"original_max_position_embeddings",
                            keys.size("rope.scaling.original_context_length", 2, kMaxSize)},
                           {"beta_fast", keys.number("rope.scaling.yarn_beta_fast", 32)},
                           {"beta_slow", keys.number("rope.scaling.yarn_beta_slow", 1)}};
  const double gain = keys.number("rope.scaling.attn_factor", 1);
  if (gain != 1) {
    config["attention_factor"] = factor <= 1 ? gain : gain * (0.1 * std::log(factor) + 1);
  }
  return config;
}

/// Divisors of each frequency in texts of the original length and in longer ones; null without them.
nlohmann::json longrope_of(const Gguf& gguf, const GgufKeys& keys) {
  nlohmann::json config = {{"rope_type", "longrope"}};
  for (const bool is_long : {false, true}) {
    const char* name = is_long ? kLongFactors : kShortFactors;
    const auto tensor = gguf.tensors().find(name);
    if (tensor == gguf.tensors().end()) return nullptr;
    if (tensor->second.dtype != Dtype::kF32 || tensor->second.shape.size() != 1) {
      throw InputError(gguf.path() + ": tensor " + name + " is " + tensor->second.describe() +
                       ", expected a list of F32");
    }
    config[is_long ? "long_factor" : "short_factor"] = to_floats(tensor->second);
  }
  config["original_max_position_embeddings"] =
      keys.size("rope.scaling.original_context_length", 2, kMaxSize);
  config["attention_factor"] = keys.number("rope.scaling.attn_factor", 1);
  return config;
}

}  // namespace

bool is_rope_tensor(std::string_view name) {
  return name == kFactors || name == kShortFactors || name == kLongFactors;
}

nlohmann::json rope_config(const Gguf& gguf, const GgufKeys& keys, uint32_t head_width) {
  const double theta = keys.number("rope.freq_base", 1e4);
  nlohmann::json config = {{"rope_theta", theta}};
  // A factor without a type is linear, and has an older name.
  const std::string type = keys.text("rope.scaling.type", "linear");
  // It says something about training, not about what to compute.
  keys.ignore("rope.scaling.finetuned");
  if (type == "yarn") {
    config["rope_scaling"] = yarn_of(keys);
    return config;
  }
  if (const nlohmann::json scaling = longrope_of(gguf, keys); !scaling.is_null()) {
    config["rope_scaling"] = scaling;
    return config;
  }
  if (type != "none" && type != "linear") {
    keys.fail("rope.scaling.type", "none, linear or yarn, or tensors of factors");
  }
  const double old_factor = keys.number("rope.scale_linear", 0);
  const double given = keys.number("rope.scaling.factor", old_factor);
  const double factor = type == "none" || given == 0 ? 1 : given;
  if (factor != 1) config["rope_scaling"] = {{"type", "linear"}, {"factor", factor}};

  const auto factors = gguf.tensors().find(kFactors);
  if (factors == gguf.tensors().end()) return config;
  if (factor != 1) {
    throw InputError(gguf.path() + ": rotary positions are scaled both by a key and by tensor " +
                     kFactors + ", expected one of them");
  }
  if (const nlohmann::json scaling =
          scaling_of(gguf, factors->second, rope_frequencies(theta, head_width));
      !scaling.is_null()) {
    config["rope_scaling"] = scaling;
  }
  return config;
}

}  // namespace oxbow::convert
