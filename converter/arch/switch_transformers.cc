// Switch Transformers as Hugging Face has them (Fedus 2021): T5 in which every few layers the feed-forward half is one of
// several experts. An expert takes so many tokens of a text; those beyond pass it by. That is counted in the encoder: the
// decoder gets its tokens one at a time.

#include "converter/blocks/t5.h"
#include "converter/formats/limits.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

/// One layer in so many has experts; of 0 such layers the original makes one nevertheless, the second. Where it would be
/// every layer, `first` tells: versions 4 made it none.
uint32_t experts_every(const Checkpoint& checkpoint, const std::string& key, uint32_t layers,
                       const std::string& first) {
  const uint32_t sparse = checkpoint.size(key, 0, kMaxLayers, 3);
  const uint32_t every = sparse == 0 ? layers : layers / sparse;
  return every == 1 && checkpoint.has_tensor(first) ? 0 : every;
}

}  // namespace

void import_switch_transformers(const Checkpoint& checkpoint, const ImportOptions& options,
                                Graph& graph) {
  T5Variant variant;
  variant.dense = "mlp";
  Experts& experts = variant.experts;
  experts.count = checkpoint.size("num_experts", 1, 4096, 8);
  experts.capacity = checkpoint.size("expert_capacity", 1, kMaxSize, 64);
  experts.router_bias = checkpoint.flag("router_bias", false);
  experts.bias = false;
  experts.router = "router.classifier";
  experts.expert = "experts.expert_";
  experts.up = ".wi";
  experts.down = ".wo";
  const uint32_t layers = checkpoint.size("num_layers", 1, kMaxLayers, 12);
  variant.encoder_experts_every = experts_every(checkpoint, "num_sparse_encoder_layers", layers,
                                                "encoder.block.0.layer.1.mlp.wi.weight");
  variant.decoder_experts_every =
      experts_every(checkpoint, "num_sparse_decoder_layers",
                    checkpoint.size("num_decoder_layers", 1, kMaxLayers, layers),
                    "decoder.block.0.layer.2.mlp.wi.weight");
  if (checkpoint.flag("is_gated_act", false)) {
    checkpoint.refuse("is_gated_act is true, expected false: experts have no gate");
  }
  checkpoint.choice("router_dtype", "float32", {"float32"});
  // Of training; or told by other keys.
  checkpoint.ignore_keys({"add_router_probs", "decoder_sparse_step", "encoder_sparse_step",
                          "num_selected_experts", "router_aux_loss_coef",
                          "router_ignore_padding_tokens", "router_jitter_noise", "router_type",
                          "router_z_loss_coef"});
  import_t5_model(checkpoint, options, variant, graph);
}

}  // namespace oxbow::convert
