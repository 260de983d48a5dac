// The Compressive Transformer as its paper has it (Rae et al. 2019, algorithm 1): Transformer-XL, whose layers are
// normed behind their residual connections, with a second memory. Rows that leave the first are compressed,
// `compression_rate` into one, and the newest `c_mem_len` of those are seen as well. Both begin full of zeros, which are
// seen. Tensors have the names of Transformer-XL's authors; layers.N.compress is the convolution.
//
// A dilated convolution reaches over rows that left before, zeros at first: its taps, `compression_kernel` of them, are
// `compression_dilation` apart, and the last is on the newest row of its group. The most used row of a group is the one that
// got the most attention, on average over all queries since it came.

#include "converter/blocks/parts.h"
#include "converter/blocks/transformer_xl.h"
#include "host/errors.h"

namespace oxbow::convert {
namespace {

Compression read_compression(const Checkpoint& checkpoint, uint32_t memory_rows) {
  Compression compression;
  compression.rate = checkpoint.size("compression_rate", 1, 4096);
  compression.memory_rows = checkpoint.size("c_mem_len", 1, 1u << 20);
  const std::string function = checkpoint.choice(
      "compression", "conv", {"conv", "dilated_conv", "mean", "max", "most_used"});
  if (function == "mean") compression.function = Compression::Function::kMean;
  if (function == "max") compression.function = Compression::Function::kMax;
  if (function == "most_used") compression.function = Compression::Function::kMostUsed;
  if (function == "dilated_conv") {
    compression.taps = checkpoint.size("compression_kernel", 1, 64, compression.rate);
    compression.dilation = checkpoint.size("compression_dilation", 1, 64, 2);
  }
  if (memory_rows + 1 < compression.rate) {
    checkpoint.refuse(
        "mem_len is " + std::to_string(memory_rows) +
        ", expected at least compression_rate - 1 = " + std::to_string(compression.rate - 1) +
        ": a whole group must be there to be compressed");
  }
  return compression;
}

}  // namespace

void import_compressive_transformer(const Checkpoint& checkpoint, const ImportOptions& options,
                                    Graph& graph) {
  TransfoXl config;
  config.starts_with_zeros = true;
  config.epsilon = static_cast<float>(checkpoint.number("layer_norm_eps", 1e-12, 1, 1e-5));
  AdaptiveWords& words = config.words;
  words.embedding_prefix = "word_emb.";
  words.head_prefix = "crit.";
  words.reversed_clusters = true;
  words.vocabulary = checkpoint.size("n_token", 1, kMaxSize);
  words.tied_words = checkpoint.flag("tie_weight", true);

  require_flag(checkpoint, "pre_lnorm", false);
  require_flag(checkpoint, "same_length", false);
  read_transfo_xl(checkpoint, options, &config);
  config.compression = read_compression(checkpoint, config.memory_rows);
  build_transfo_xl(checkpoint, config, graph);
  graph.model.metadata->time_major = true;
}

}  // namespace oxbow::convert
