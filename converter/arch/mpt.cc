// MPT as in Hugging Face transformers: ALiBi, packed projections, and norms and layers without biases.

#include <bit>
#include <cstdio>

#include "converter/causal_decoder.h"
#include "converter/errors.h"

namespace oxbow::convert {
namespace {

struct Mpt {
  CausalShape shape;
  uint32_t width;
  /// Of the feed-forward layers, in units of the width.
  uint32_t expansion;
  float epsilon, scale;
  /// Queries, keys and values are clamped to it; 0: they are not.
  float clip;
  /// Biases may be there.
  bool bias;
  bool tied;
  std::string prefix;
};

/// Transformers 4.32 to 4.41 read attn_config.clip_qkv and did nothing with it; models made with them
/// expect just that.
bool clip_was_forgotten(const Checkpoint& checkpoint) {
  int major = 0, minor = 0;
  const std::string version = checkpoint.note("transformers_version");
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) return false;
  return major == 4 && minor >= 32 && minor <= 41;
}

void warn_of_what_is_not_applied(const Checkpoint& checkpoint, float clip, Graph& graph) {
  if (clip != 0 && clip_was_forgotten(checkpoint)) {
    graph.warnings.push_back(
        "attn_config.clip_qkv is not applied, as in the transformers_version that config.json "
        "names; "
        "remove that key to have it applied");
  }
  if (!checkpoint.flag("attn_config.alibi", true)) {
    graph.warnings.push_back(
        "attn_config.alibi is false; ALiBi is used nevertheless, as in transformers");
  }
  if (checkpoint.has_value("logit_scale")) {
    graph.warnings.push_back("logit_scale is not applied, as in transformers");
  }
}

Mpt read(const Checkpoint& checkpoint, Graph& graph) {
  Mpt config;
  CausalShape& shape = config.shape;
  shape.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  shape.layers = checkpoint.size("n_layers", 1, kMaxLayers);
  config.width = checkpoint.size("d_model", 1, kMaxSize / 4);
  shape.heads = shape.kv_heads = checkpoint.size("n_heads", 1, config.width);
  require_multiple("d_model", config.width, "n_heads", shape.heads);
  if (!std::has_single_bit(shape.heads)) {
    throw InputError("config.json: n_heads is " + std::to_string(shape.heads) +
                     ", expected a power of two: others have no slopes in the original");
  }
  shape.head_width = config.width / shape.heads;
  shape.length_key = "max_seq_len";
  shape.length = checkpoint.size(shape.length_key, 1, kMaxSize, kDefaultContext);
  shape.slopes = alibi_slopes(shape.heads);
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_epsilon", 1e-12, 1, 1e-5));
  config.scale = static_cast<float>(
      checkpoint.number("attn_config.softmax_scale", -1e6, 1e6, attention_scale(shape.head_width)));
  config.clip = static_cast<float>(checkpoint.number("attn_config.clip_qkv", 0, 1e6, 0));
  warn_of_what_is_not_applied(checkpoint, config.clip, graph);
  if (clip_was_forgotten(checkpoint)) config.clip = 0;
  config.bias = !checkpoint.flag("no_bias", true);
  config.tied = checkpoint.flag("tie_word_embeddings", true);
  config.prefix = optional_prefix(checkpoint, "transformer.", "wte.weight");

  // Transformers always has 4, whatever this says; the code that MPT was trained with obeys it.
  const uint32_t ratio = checkpoint.size("expansion_ratio", 1, 64, 4);
  const std::vector<uint64_t>& up = checkpoint.shape(config.prefix + "blocks.0.ffn.up_proj.weight");
  const bool is_four = !up.empty() && up[0] == 4ull * config.width;
  config.expansion = is_four ? 4 : ratio;

  checkpoint.choice("norm_type", "low_precision_layernorm",
                    {"low_precision_layernorm", "layernorm"});
  checkpoint.choice("attn_config.attn_type", "multihead_attention", {"multihead_attention"});
  // Positions are ALiBi's, so that there is no table of them; the rest concerns training, or how
  // attention is computed. alibi_bias_max is 8 in the original, whatever this says.
  checkpoint.ignore_keys({"learned_pos_emb", "init_device", "init_config", "verbose",
                          "embedding_fraction", "logit_scale", "attn_config.attn_impl",
                          "attn_config.alibi_bias_max", "attn_config.tie_word_embeddings"});
  ignore_common_keys(checkpoint);
  ignore_common_keys(checkpoint, "attn_config.");
  return config;
}

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const Mpt& config,
          Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        decoder_(checkpoint, options, config.shape, graph),
        zeros_(decoder_.builder().weight("zeros", 1, config.width,
                                         std::vector<float>(config.width))) {}

  void build() {
    GraphBuilder& builder = decoder_.builder();
    const uint32_t vocabulary = config_.shape.vocabulary, width = config_.width;
    const uint32_t words = parts().matrix(config_.prefix + "wte.weight", vocabulary, width);
    uint32_t x = builder.embedding("embedded", builder.tokens(), words);
    for (uint32_t i = 0; i < config_.shape.layers; ++i) {
      decoder_.layer_input(i, x);
      x = layer(i, x);
    }
    const uint32_t last = norm("final_norm", builder.take_rows("tail", x), "norm_f");
    if (config_.tied) checkpoint_.ignore_tensor("lm_head.weight");
    decoder_.logits(last,
                    config_.tied ? words : parts().matrix("lm_head.weight", vocabulary, width));
    decoder_.describe({{"d_ff", config_.expansion * width}, {"d_model", width}});
  }

 private:
  Parts& parts() { return decoder_.parts(); }
  bool has_bias(const std::string& of) const {
    return config_.bias && checkpoint_.has_tensor(config_.prefix + of + ".bias");
  }
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    const std::string tensor = config_.prefix + of;
    const uint32_t bias = has_bias(of) ? parts().vector(tensor + ".bias", config_.width) : zeros_;
    return decoder_.builder().layer_norm(name, x, parts().vector(tensor + ".weight", config_.width),
                                         bias, config_.epsilon);
  }
  uint32_t linear(const std::string& name, uint32_t x, const std::string& of, uint32_t in,
                  uint32_t out) {
    return parts().linear(name, x, config_.prefix + of, in, out, has_bias(of));
  }

  /// Queries (0), keys (1) or values (2): a third of a packed matrix.
  uint32_t project(const std::string& name, uint32_t x, const std::string& of, uint32_t part) {
    GraphBuilder& builder = decoder_.builder();
    const uint32_t width = config_.width;
    const std::string tensor = config_.prefix + of, suffix = "." + std::to_string(part);
    const std::vector<float> packed = checkpoint_.matrix(tensor + ".weight", 3 * width, width);
    uint32_t bias = GraphBuilder::kNone;
    if (has_bias(of)) {
      const std::vector<float> biases = checkpoint_.vector(tensor + ".bias", 3 * width);
      bias = builder.weight(tensor + ".bias" + suffix, 1, width,
                            rows_of(biases, 1, size_t{part} * width, width));
    }
    const uint32_t weight = builder.weight(tensor + ".weight" + suffix, width, width,
                                           rows_of(packed, width, size_t{part} * width, width));
    const uint32_t y = builder.linear(name, x, weight, bias);
    if (config_.clip == 0) return y;
    return builder.activate(name + ".clipped", y, schema::Activation::Clamp, config_.clip);
  }

  uint32_t layer(uint32_t index, uint32_t x) {
    const std::string name = "layer" + std::to_string(index);
    const std::string of = "blocks." + std::to_string(index) + ".";
    const uint32_t width = config_.width, inner = config_.expansion * width;
    GraphBuilder& builder = decoder_.builder();

    const uint32_t z = norm(name + ".normed", x, of + "norm_1");
    const uint32_t q = project(name + ".q", z, of + "attn.Wqkv", 0);
    const uint32_t k = project(name + ".k", z, of + "attn.Wqkv", 1);
    const uint32_t v = project(name + ".v", z, of + "attn.Wqkv", 2);
    const uint32_t attended = decoder_.attend(index, q, k, v, config_.scale);
    const uint32_t y =
        builder.add(name + ".attended", x,
                    linear(name + ".attention.out", attended, of + "attn.out_proj", width, width));

    const uint32_t normed = norm(name + ".ff.normed", y, of + "norm_2");
    const uint32_t wide = linear(name + ".ff.wide", normed, of + "ffn.up_proj", width, inner);
    const uint32_t active = builder.activate(name + ".ff.active", wide, schema::Activation::Gelu);
    return builder.add(name + ".out", y,
                       linear(name + ".ff.out", active, of + "ffn.down_proj", inner, width));
  }

  const Checkpoint& checkpoint_;
  const Mpt& config_;
  CausalDecoder decoder_;
  /// The bias of norms that have none.
  uint32_t zeros_;
};

}  // namespace

void import_mpt(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Mpt config = read(checkpoint, graph);
  Builder(checkpoint, options, config, graph).build();
}

}  // namespace oxbow::convert
