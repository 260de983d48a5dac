// LFM2 as in Hugging Face transformers: most layers are gated convolutions of a few rows, some attend, with
// normed queries and keys.

#include <cmath>

#include "converter/blocks/causal_decoder.h"
#include "converter/blocks/decoder_config.h"
#include "converter/blocks/recurrent.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

constexpr uint32_t kMaxTaps = 4096;

struct Lfm2 {
  CausalShape shape;
  AttentionHeads heads;
  uint32_t width, inner, taps;
  float epsilon;
  bool convolution_bias, tied;
  /// Of each layer: attends, rather than convolves.
  std::vector<bool> attends;
};

std::vector<bool> read_kinds(const Checkpoint& checkpoint, uint32_t layers) {
  std::vector<bool> attends(layers, true);
  const std::vector<std::string> kinds = checkpoint.texts("layer_types");
  const std::vector<uint32_t> listed = checkpoint.sizes("full_attn_idxs", 0, layers - 1);
  if (kinds.empty() && checkpoint.has_value("full_attn_idxs")) {
    attends.assign(layers, false);
    for (const uint32_t index : listed) attends[index] = true;
    return attends;
  }
  if (kinds.empty()) return attends;
  if (kinds.size() != layers) {
    checkpoint.refuse("layer_types has " + std::to_string(kinds.size()) +
                      " entries, expected num_hidden_layers, " + std::to_string(layers));
    return attends;
  }
  for (uint32_t i = 0; i < layers; ++i) {
    if (kinds[i] != "conv" && kinds[i] != "full_attention") {
      checkpoint.refuse("layer_types has " + printable(kinds[i]) +
                        ", expected conv or full_attention");
    }
    attends[i] = kinds[i] == "full_attention";
  }
  return attends;
}

/// Two thirds of the size that is told, times a factor, rounded up, unless it is meant as it is.
uint32_t read_inner(const Checkpoint& checkpoint) {
  // The name of published files is the stronger one.
  const uint32_t told = checkpoint.size("intermediate_size", 1, kMaxSize, 12288);
  uint32_t inner = checkpoint.size("block_ff_dim", 1, kMaxSize, told);
  const double factor = checkpoint.number("block_ffn_dim_multiplier", 1e-3, 1e3, 1);
  const bool has_factor = checkpoint.has_value("block_ffn_dim_multiplier");
  const uint32_t multiple = checkpoint.size("block_multiple_of", 1, kMaxSize, 256);
  if (!checkpoint.flag("block_auto_adjust_ff_dim", true)) return inner;
  inner = 2 * inner / 3;
  if (has_factor) inner = static_cast<uint32_t>(factor * inner);
  inner = (inner + multiple - 1) / multiple * multiple;
  if (inner == 0 || inner > kMaxSize) {
    checkpoint.refuse("the adjusted block_ff_dim is " + std::to_string(inner) + ", expected 1 to " +
                      std::to_string(kMaxSize));
    return 1;
  }
  return inner;
}

Lfm2 read(const Checkpoint& checkpoint, const ImportOptions& options) {
  Lfm2 config;
  CausalShape& shape = config.shape;
  AttentionHeads& heads = config.heads;
  shape.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  shape.layers = checkpoint.size("num_hidden_layers", 1, kMaxLayers);
  config.width = checkpoint.size("hidden_size", 1, kMaxSize);
  heads.count = checkpoint.size("num_attention_heads", 1, config.width);
  heads.kv = checkpoint.size("num_key_value_heads", 1, heads.count, heads.count);
  require_multiple(checkpoint, "num_attention_heads", heads.count, "num_key_value_heads", heads.kv);
  require_multiple(checkpoint, "hidden_size", config.width, "num_attention_heads", heads.count);
  heads.width = config.width / heads.count;
  require_multiple(checkpoint, "the width of a head", heads.width, "pairs to turn", 2);
  shape.length_key = "max_position_embeddings";
  shape.length = checkpoint.size(shape.length_key, 1, kMaxSize, 128000);
  set_rope(shape, read_rope(checkpoint, options, shape, heads.width,
                            {.default_theta = checkpoint.number("theta", 1, 1e12, 1e6),
                             .for_long_texts = true}));
  config.inner = read_inner(checkpoint);
  config.taps = checkpoint.size("conv_L_cache", 1, kMaxTaps, 3);
  config.convolution_bias = checkpoint.flag("conv_bias", false);
  config.epsilon = static_cast<float>(checkpoint.number("norm_eps", 1e-12, 1, 1e-5));
  const bool tied = checkpoint.flag("tie_word_embeddings", true);
  config.tied = checkpoint.flag("tie_embedding", tied);
  config.attends = read_kinds(checkpoint, shape.layers);
  require_flag(checkpoint, "block_use_swiglu", true);
  require_flag(checkpoint, "use_pos_enc", true);
  require_flag(checkpoint, "is_encoder_decoder", false);
  // Training, and older names of keys above.
  checkpoint.ignore_keys({"block_mlp_init_scale", "block_out_init_scale", "block_use_xavier_init",
                          "conv_use_xavier_init", "block_dim", "block_norm_eps", "conv_dim",
                          "conv_dim_out", "num_heads"});
  ignore_common_keys(checkpoint);
  return config;
}

class Builder {
 public:
  Builder(const Checkpoint& checkpoint, const ImportOptions& options, const Lfm2& config,
          Graph& graph)
      : checkpoint_(checkpoint),
        config_(config),
        graph_(graph),
        decoder_(checkpoint, options, config.shape, config.heads, graph) {}

  void build() {
    const uint32_t vocabulary = config_.shape.vocabulary, width = config_.width;
    const std::string prefix = optional_prefix(checkpoint_, "model.", "embed_tokens.weight");
    const uint32_t words = parts().matrix(prefix + "embed_tokens.weight", vocabulary, width);
    uint32_t x = builder().embedding("embedded", builder().tokens(), words);
    for (uint32_t i = 0; i < config_.shape.layers; ++i) {
      decoder_.layer_input(i, x);
      x = layer(i, x, prefix + "layers." + std::to_string(i) + ".");
    }
    // Named after the embeddings, and applied behind the last layer.
    const uint32_t last = norm("last", builder().take_rows("tail", x), prefix + "embedding_norm");
    decoder_.logits(last, head_matrix(checkpoint_, parts(), config_.tied, words, "lm_head.weight",
                                      vocabulary, width));
    decoder_.describe(
        {{"conv_L_cache", config_.taps}, {"d_ff", config_.inner}, {"d_model", width}});
    graph_.model.metadata->transposed_states = transposed_;
  }

 private:
  GraphBuilder& builder() { return decoder_.builder(); }
  Parts& parts() { return decoder_.parts(); }
  uint32_t norm(const std::string& name, uint32_t x, const std::string& of) {
    return parts().rms_norm(name, x, of, config_.width, config_.epsilon);
  }

  uint32_t layer(uint32_t index, uint32_t x, const std::string& of) {
    const std::string name = "layer" + std::to_string(index);
    const uint32_t z = norm(name + ".normed", x, of + "operator_norm");
    const uint32_t y =
        builder().add(name + ".mixed", x,
                      config_.attends[index] ? attention(index, name, z, of + "self_attn.")
                                             : convolution(index, name, z, of + "conv."));
    const uint32_t normed = norm(name + ".ff.normed", y, of + "ffn_norm");
    return builder().add(
        name + ".out", y,
        gated_feed_forward(builder(), parts(), name + ".ff", normed,
                           {of + "feed_forward.w1", of + "feed_forward.w3", of + "feed_forward.w2",
                            config_.width, config_.inner}));
  }

  /// The original norms each head, with one weight for all.
  uint32_t normed_heads(const std::string& name, uint32_t x, const std::string& of,
                        uint32_t heads) {
    return builder().rms_norm(name, x, parts().vector(of + ".weight", config_.heads.width),
                              config_.epsilon, heads);
  }

  uint32_t attention(uint32_t index, const std::string& name, uint32_t z, const std::string& of) {
    const AttentionHeads& heads = config_.heads;
    const uint32_t width = config_.width, keys = heads.keys();
    const uint32_t q = normed_heads(
        name + ".q", parts().linear(name + ".q.in", z, of + "q_proj", width, width, false),
        of + "q_layernorm", heads.count);
    const uint32_t k = normed_heads(
        name + ".k", parts().linear(name + ".k.in", z, of + "k_proj", width, keys, false),
        of + "k_layernorm", heads.kv);
    const uint32_t v = parts().linear(name + ".v", z, of + "v_proj", width, keys, false);
    const uint32_t attended = decoder_.attend(index, q, k, v, attention_scale(heads.width));
    return parts().linear(name + ".attention.out", attended, of + "out_proj", width, width, false);
  }

  uint32_t convolution(uint32_t index, const std::string& name, uint32_t z, const std::string& of) {
    const uint32_t width = config_.width;
    const bool bias = config_.convolution_bias;
    transposed_.push_back("state.layer" + std::to_string(index) + ".conv");
    const auto third = [&](const char* suffix, uint32_t which) {
      return parts().linear_rows(name + suffix, z, of + "in_proj", width, 3 * width, which * width,
                                 width, bias);
    };
    const uint32_t u = builder().multiply(name + ".u", third(".b", 0), third(".x", 2));
    const uint32_t filtered = parts().causal_convolution(name + ".filtered", u, of + "conv", width,
                                                         config_.taps, bias, transposed_.back());
    const uint32_t y = builder().multiply(name + ".gated", filtered, third(".c", 1));
    return parts().linear(name + ".conv.out", y, of + "out_proj", width, width, bias);
  }

  const Checkpoint& checkpoint_;
  const Lfm2& config_;
  Graph& graph_;
  CausalDecoder decoder_;
  std::vector<std::string> transposed_;
};

}  // namespace

void import_lfm2(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const Lfm2 config = read(checkpoint, options);
  Builder(checkpoint, options, config, graph).build();
}

}  // namespace oxbow::convert
