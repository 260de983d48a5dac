#include "converter/blocks/torchscale.h"

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

}  // namespace oxbow::convert
