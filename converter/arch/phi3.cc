// Phi-3 and Phi-4: Llama whose queries, keys and values, and gate and up projections, are packed.

#include "converter/blocks/decoder_config.h"
#include "converter/blocks/transformers_version.h"

namespace oxbow::convert {

void import_phi3(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  Decoder decoder = read_llama_like(checkpoint, options, 0, {.part = "partial_rotary_factor"});
  const uint32_t window =
      window_keys(checkpoint, checkpoint.size("sliding_window", 1, kMaxSize - 1, 0));
  // Of those for long texts it is longer than any of them.
  if (window < decoder.shape.length) decoder.shape.window = window;
  LayerNames& names = decoder.layer.names;
  names.q = names.k = names.v = names.gate = names.up = "";
  names.packed = "self_attn.qkv_proj";
  names.gate_up = "mlp.gate_up_proj";
  // The first is for longrope alone; the others no version of the model reads.
  checkpoint.ignore_keys(
      {"original_max_position_embeddings", "full_attn_mod", "interpolate_factor"});
  build_decoder(checkpoint, options, decoder, graph);
}

}  // namespace oxbow::convert
