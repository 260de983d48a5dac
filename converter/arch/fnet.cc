// FNet (Lee-Thorp et al. 2021) as in Hugging Face's library: an encoder whose tokens are mixed by a Fourier transform
// instead of attention. There is no mask: padding is read like any token.

#include "converter/blocks/encoder.h"

namespace oxbow::convert {
namespace {

EncoderConfig read(const Checkpoint& checkpoint, const ImportOptions& options) {
  EncoderConfig config;
  TransformerLayer& layer = config.layer;
  config.base = "fnet.";
  config.has_mask = false;
  config.vocabulary = checkpoint.size("vocab_size", 1, kMaxSize);
  config.types = checkpoint.size("type_vocab_size", 1, kMaxSize, 4);
  config.positions = checkpoint.size("max_position_embeddings", 1, kMaxSize);
  layer.width = config.embedding_width = checkpoint.size("hidden_size", 1, kMaxSize);
  layer.inner = checkpoint.size("intermediate_size", 1, kMaxSize);
  config.layers = checkpoint.size("num_hidden_layers", 1, kMaxLayers);
  layer.norm.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-20, 1, 1e-12));
  layer.activation = read_activation(checkpoint, "hidden_act", "gelu_new");
  config.tied = checkpoint.flag("tie_word_embeddings", true);
  config.max_segment = read_encoder_segment(options, config.positions);
  require_flag(checkpoint, "is_decoder", false);
  require_flag(checkpoint, "add_cross_attention", false);
  require_flag(checkpoint, "is_encoder_decoder", false);
  // How the same transform is computed on other machines.
  checkpoint.ignore_keys({"use_tpu_fourier_optimizations", "tpu_short_seq_length", "use_fft"});
  ignore_common_keys(checkpoint);
  return config;
}

}  // namespace

void import_fnet(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  const EncoderConfig config = read(checkpoint, options);
  const uint32_t width = config.layer.width, inner = config.layer.inner;
  Encoder encoder(checkpoint, config, graph);
  GraphBuilder& builder = encoder.builder();
  LayerBuilder& layers = encoder.layer_builder();
  const uint32_t positions = builder.positions("positions", config.positions, {});
  uint32_t x = encoder.parts().linear("projected", encoder.embeddings(positions),
                                      encoder.prefix() + "embeddings.projection", width, width);
  for (uint32_t i = 0; i < config.layers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    const std::string of = encoder.prefix() + "encoder.layer." + std::to_string(i) + ".";
    builder.debug_output(x, "hidden_states." + std::to_string(i));
    const uint32_t mixed = builder.add(name + ".sum", x, builder.fourier(name + ".mixed", x));
    const uint32_t y = layers.norm(name + ".normed", mixed, of + "fourier.output.LayerNorm", width);
    const uint32_t wide =
        encoder.parts().linear(name + ".wide", y, of + "intermediate.dense", width, inner);
    const uint32_t narrow = encoder.parts().linear(
        name + ".narrow", builder.activate(name + ".active", wide, config.layer.activation),
        of + "output.dense", inner, width);
    x = layers.norm(name + ".out", builder.add(name + ".ff_sum", y, narrow),
                    of + "output.LayerNorm", width);
  }
  builder.debug_output(x, "hidden_states." + std::to_string(config.layers));
  MaskedHead head;
  head.activation = config.layer.activation;
  encoder.finish(x, head, schema::Activation::Tanh);
  encoder.leave_out_sentence_head();
}

}  // namespace oxbow::convert
