#include "converter/blocks/torchscale.h"

#include <cmath>

#include "converter/blocks/parts.h"

namespace oxbow::convert {

void read_torchscale_keys(const Checkpoint& checkpoint) {
  for (const char* absent : {"multiway", "no_output_layer", "xpos_rel_pos"}) {
    require_flag(checkpoint, absent, false);
  }
  for (const char* absent : {"moe_freq", "rel_pos_buckets", "max_rel_pos"}) {
    checkpoint.size(absent, 0, 0, 0);
  }
  // What only experts, training and the encoder of the same library look at.
  checkpoint.ignore_keys({"drop_path_rate", "moe_top1_expert", "moe_expert_count",
                          "moe_gating_use_fp32", "moe_eval_capacity_token_fraction",
                          "moe_second_expert_policy", "moe_normalize_gate_prob_before_dropping",
                          "use_xmoe", "max_target_positions", "checkpoint_activations", "fsdp",
                          "ddp_rank", "xpos_scale_base", "encoder_normalize_before"});
}

TorchscaleStream read_torchscale_stream(const Checkpoint& checkpoint, uint32_t width,
                                        uint32_t layers) {
  TorchscaleStream stream;
  stream.embedding_scale = checkpoint.flag("no_scale_embedding", true)
                               ? 1.0f
                               : static_cast<float>(std::sqrt(static_cast<double>(width)));
  stream.embedding_norm = checkpoint.flag("layernorm_embedding", false);
  stream.tied = checkpoint.flag("share_decoder_input_output_embed", false);
  stream.pre_norm = checkpoint.flag("decoder_normalize_before", true);
  stream.inner_norms = checkpoint.flag("subln", true);
  stream.residual_scale = 1.0f;
  if (checkpoint.flag("deepnorm", false)) {
    stream.pre_norm = stream.inner_norms = false;
    stream.residual_scale = static_cast<float>(std::pow(2.0 * layers, 0.25));
  } else if (stream.inner_norms) {
    stream.pre_norm = true;
  }
  return stream;
}

}  // namespace oxbow::convert
