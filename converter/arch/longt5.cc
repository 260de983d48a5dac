// LongT5 (Guo 2022): T5 whose encoder sees a window around each token and, if it is transient-global, a sum of each block
// of the text besides.

#include "converter/blocks/t5.h"
#include "converter/formats/limits.h"

namespace oxbow::convert {

void import_longt5(const Checkpoint& checkpoint, const ImportOptions& options, Graph& graph) {
  T5Variant variant;
  variant.length = 4096;
  variant.radius = checkpoint.size("local_radius", 1, kMaxSize, 127);
  const uint32_t block = checkpoint.size("global_block_size", 1, kMaxSize, 16);
  const std::string kind =
      checkpoint.choice("encoder_attention_type", "local", {"local", "transient-global"});
  variant.attention = "LocalSelfAttention";
  if (kind == "transient-global") {
    variant.attention = "TransientGlobalSelfAttention";
    variant.block = block;
    if ((block & (block - 1)) != 0) {
      graph.warnings.push_back(
          "global_block_size is no power of two: blocks are cut exactly, where the original sums "
          "up fractions and "
          "may begin a block a token late");
    }
  }
  import_t5_model(checkpoint, options, variant, graph);
}

}  // namespace oxbow::convert
