// The Compressive Transformer as written by labml.ai (labml_nn/transformers/compressive): as their
// Transformer-XL, but rows that leave the memory are compressed, `compression_rate` into one, and
// the newest `c_mem_len` of those are attended to as well.

#include "converter/blocks/memory_decoder.h"

namespace oxbow::convert {

void import_labml_compressive_transformer(const Checkpoint& checkpoint,
                                          const ImportOptions& options, Graph& graph) {
  MemoryDecoder config = read_memory_decoder(checkpoint, options);
  Compression compression;
  compression.rate = checkpoint.size("compression_rate", 1, 4096);
  compression.memory_rows = checkpoint.size("c_mem_len", 0, 1u << 20);
  const std::string function = checkpoint.choice("compression", "conv", {"conv", "mean", "max"});
  if (function == "mean") compression.function = Compression::Function::kMean;
  if (function == "max") compression.function = Compression::Function::kMax;
  config.compression = compression;
  if (compression.memory_rows == 0) {
    // Nothing is compressed, whatever was trained to do it.
    for (uint32_t i = 0; i < config.layers; ++i) {
      const std::string prefix = "transformer.layers." + std::to_string(i) + ".compress.conv.";
      checkpoint.ignore_tensor(prefix + "weight");
      checkpoint.ignore_tensor(prefix + "bias");
    }
  }
  build_memory_decoder(checkpoint, config, graph);
}

}  // namespace oxbow::convert
