// MPT as in Hugging Face transformers: ALiBi, packed projections, and norms and layers without biases.

#include <bit>

#include "converter/blocks/decoder.h"
#include "converter/blocks/transformers_version.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// Transformers 4.32 to 4.41 read attn_config.clip_qkv and did nothing with it; models made with them
/// expect just that.
bool clip_was_forgotten(const Checkpoint& checkpoint) {
  const int version = transformers_version(checkpoint);
  return version >= 432 && version <= 441;
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

}  // namespace

void import_mpt(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  Decoder decoder;
  CausalShape& shape = decoder.shape;
  TransformerLayer& layer = decoder.layer;
  shape.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  shape.layers = checkpoint.size("n_layers", 1, kMaxLayers);
  layer.width = checkpoint.size("d_model", 1, kMaxSize / 4);
  layer.heads = read_heads(checkpoint, "d_model", layer.width, "n_heads");
  if (!std::has_single_bit(layer.heads.count)) {
    checkpoint.refuse("n_heads is " + std::to_string(layer.heads.count) +
                      ", expected a power of two: others have no slopes in the original");
  }
  shape.length_key = "max_seq_len";
  shape.length = checkpoint.size(shape.length_key, 1, kMaxSize, kDefaultContext);
  shape.slopes = alibi_slopes(layer.heads.count);
  decoder.scale = static_cast<float>(checkpoint.number("attn_config.softmax_scale", -1e6, 1e6,
                                                       double{attention_scale(layer.heads.width)}));
  layer.clip = static_cast<float>(checkpoint.number("attn_config.clip_qkv", 0, 1e6, 0));
  warn_of_what_is_not_applied(checkpoint, layer.clip, graph);
  if (clip_was_forgotten(checkpoint)) layer.clip = 0;
  const Bias bias = checkpoint.flag("no_bias", true) ? Bias::kNone : Bias::kStored;
  layer.norm = {
      .bias = bias,
      .epsilon = static_cast<float>(checkpoint.number("layer_norm_epsilon", 1e-12, 1, 1e-5))};
  layer.qkv_bias = layer.out_bias = layer.up_bias = layer.down_bias = bias;
  decoder.tied = checkpoint.flag("tie_word_embeddings", true);

  DecoderNames& names = decoder.names;
  names.prefix = optional_prefix(checkpoint, "transformer.", "wte.weight");
  names.words = "wte";
  names.layers = "blocks.";
  names.final_norm = "norm_f";
  layer.names = {.attention_norm = "norm_1",
                 .feed_forward_norm = "norm_2",
                 .packed = "attn.Wqkv",
                 .attention_out = "attn.out_proj",
                 .up = "ffn.up_proj",
                 .down = "ffn.down_proj"};

  // Transformers always has 4, whatever this says; the code that MPT was trained with obeys it.
  const uint32_t ratio = checkpoint.size("expansion_ratio", 1, 64, 4);
  const std::vector<uint64_t>& up = checkpoint.shape(names.prefix + "blocks.0.ffn.up_proj.weight");
  const bool is_four = !up.empty() && up[0] == 4ull * layer.width;
  layer.inner = (is_four ? 4 : ratio) * layer.width;

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
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
